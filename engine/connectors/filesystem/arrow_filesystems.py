"""The file systems of tables: of this machine, of object stores with the options of a table, and of any other
URL that Arrow knows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.fs as pafs

from penstock.catalog.connectors.filesystem import object_scheme
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import redact_url

_SCHEMES = "there is file://, s3://, gs://, az:// and hdfs://, as far as this Arrow was built with them"
_NONE: Mapping[str, str] = MappingProxyType({})
# the options of a table, as settings of the client that writes
_CLIENT_OPTIONS = {
    "s3.endpoint": "endpoint",
    "s3.region": "region",
    "s3.access-key": "access_key_id",
    "s3.secret-key": "secret_access_key",
    "s3.session-token": "session_token",
}
# Arrow's words for what a store answers
_FAULTS = {
    "NO_SUCH_BUCKET": ("DAT-5504", "the bucket does not exist", "make the bucket, or correct its name"),
    "INVALID_ACCESS_KEY_ID": ("DAT-5505", "the access key is not known there", "correct the access key"),
    "SIGNATURE_DOES_NOT_MATCH": ("DAT-5505", "the secret key is not the right one", "correct the secret key"),
    "ACCESS_DENIED": ("DAT-5506", "access is denied", "the user needs the right to list and read below it"),
    "Expired": ("DAT-5507", "the credentials have expired", "renew the credentials, then start again"),
    "EXPIRED": ("DAT-5507", "the credentials have expired", "renew the credentials, then start again"),
    "PermanentRedirect": ("DAT-5508", "the bucket is in another region", "set 's3.region', or AWS_REGION"),
    "NETWORK_CONNECTION": ("DAT-5509", "nothing answers there", "check the endpoint and the network"),
    "SLOW_DOWN": ("DAT-5509", "it asks for fewer requests", "read it again later"),
}


def resolve(path: str, options: Mapping[str, str] = _NONE) -> tuple[pafs.FileSystem, str]:
    """Return the filesystem of a path or URL, and the path within it. DAT-4109 for a URL that cannot be
    opened.
    """
    # a plain path is local, relative to the working directory
    if "://" not in path:
        return pafs.LocalFileSystem(), str(Path(path).expanduser().absolute())
    scheme, rest = object_scheme(path), path.partition("://")[2]
    try:
        # a URL with a query carries settings of Arrow's own, and one with an @ an account
        if scheme == "s3" and "?" not in path and "@" not in path:
            return _s3(options), rest.strip("/")
        if scheme == "az" and path.startswith("az://"):
            return _azure(), rest.strip("/")
        filesystem, inside = pafs.FileSystem.from_uri(path)
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        reason = str(error)[:200]
        raise PenstockError(
            "DAT-4109",
            f"the URL {redact_url(path)} cannot be opened",
            detail=reason,
            hint=_SCHEMES,
            kind=Kind.EXTERNAL,
        ) from error
    return filesystem, inside.rstrip("/") or "/"


def client_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a table that say how an object store is reached, as its client takes them."""
    found = {name: options[key] for key, name in _CLIENT_OPTIONS.items() if key in options}
    if not _path_style(options, found.get("endpoint", "")) and "endpoint" in found:
        found["virtual_hosted_style_request"] = "true"
    return found


def store_error(shown: str, error: OSError) -> PenstockError | None:
    """Return the coded error for an answer of an object store; None for another error."""
    text = str(error)
    for word, (code, sentence, hint) in _FAULTS.items():
        if word in text:
            passes = code == "DAT-5509"
            message = f"{shown} cannot be read: {sentence}"
            return PenstockError(
                code, message, hint=hint, kind=Kind.EXTERNAL, retriable=passes, sqlstate="58030"
            )
    return None


def _s3(options: Mapping[str, str]) -> pafs.FileSystem:
    endpoint = options.get("s3.endpoint") or _environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    region = options.get("s3.region") or _environment("AWS_REGION", "AWS_DEFAULT_REGION")
    scheme, separator, address = (endpoint or "").partition("://")
    settings = {
        "access_key": options.get("s3.access-key"),
        "secret_key": options.get("s3.secret-key"),
        "session_token": options.get("s3.session-token"),
        # a server of one's own has no region to look up
        "region": region or ("us-east-1" if endpoint else None),
        "endpoint_override": (address if separator else endpoint) or None,
        "scheme": scheme if separator else None,
        "force_virtual_addressing": bool(endpoint) and not _path_style(options, endpoint or ""),
    }
    return pafs.S3FileSystem(**{name: value for name, value in settings.items() if value})


def _azure() -> pafs.FileSystem:
    name = _environment("AZURE_STORAGE_ACCOUNT_NAME")
    if name is None:
        raise ValueError("AZURE_STORAGE_ACCOUNT_NAME is not set")
    return pafs.AzureFileSystem(name, account_key=_environment("AZURE_STORAGE_ACCOUNT_KEY"))


def _path_style(options: Mapping[str, str], endpoint: str) -> bool:
    given = options.get("s3.path-style-access")
    return bool(endpoint) if given is None else given.strip().lower() == "true"


def _environment(*names: str) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)
