"""Requests to an object store, tried again where that may help. Only conditional writes decide a race.

The library's own retries are off. After a lost answer it could not tell a write that lost a race from its own
write that came through. Here such an answer is recognized by what the store then holds.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.locations import ObjectUrl
from penstock.engine.storage.object_errors import StoreFault, fault_of

_Result = TypeVar("_Result")
# 0.1, 0.2, 0.4 .. seconds: seven attempts in about 6 s, which outlasts a throttled prefix and a failover
ATTEMPTS = 7
_FIRST_PAUSE_S = 0.1
_TIMEOUT_S = 60
_CONNECT_TIMEOUT_S = 5
# one request a part: memory is bounded by it, and a failed part is sent again alone
PART_BYTES = 16 << 20
# a file of at most so many bytes is uploaded in one request
WHOLE_BYTES = 64 << 20


@dataclass(frozen=True)
class Version:
    """What a conditional write compares: S3 and Azure give an ETag, Google a generation."""

    e_tag: str | None
    number: str | None = None

    @property
    def condition(self) -> dict[str, str]:
        """The condition as the library takes it: an absent part is left out."""
        parts = {"e_tag": self.e_tag, "version": self.number}
        return {name: part for name, part in parts.items() if part is not None}


@dataclass(frozen=True)
class StoredObject:
    """An object of a listing; ``modified_us`` by the store's clock."""

    key: str
    size: int
    modified_us: int


class ConditionFailedError(Exception):
    """A conditional write found another object than it was conditioned on."""


class ObjectClient:
    """The objects of one bucket. ``key`` is always the whole key, without a leading slash.

    Every method raises FileNotFoundError for a missing object where that is an error, and a PenstockError of
    DAT-55xx for every other failure. ``counts``: requests and retries so far, by name. ``told`` is called
    with the sentence of a failure before it is tried again.
    """

    def __init__(
        self,
        store: Any,
        where: str,
        *,
        pause: Callable[[float], None] = time.sleep,
        told: Callable[[str], None] | None = None,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._store = store
        self.where = where
        self._pause = pause
        self._report = told
        self._attempts = attempts
        self.counts: Counter[str] = Counter()
        # whether the store was seen to keep conditions
        self.probed = False

    def report(self, sentence: str) -> None:
        """Tell a sentence to whoever listens."""
        if self._report is not None:
            self._report(sentence)

    def put_new(self, key: str, data: bytes | memoryview) -> Version:
        """Write an object that must not exist yet; FileExistsError when it does.

        An answer that was lost is settled by reading: an object with the very bytes is taken for ours. So two
        writers of one name must never write the same bytes; an empty object is therefore never taken.
        """
        from obstore import put
        from obstore.exceptions import AlreadyExistsError, BaseError

        uncertain = False

        def attempt() -> Version:
            nonlocal uncertain
            try:
                return _version(put(self._store, key, data, mode="create", use_multipart=False))
            except AlreadyExistsError as error:
                found = self._read_if_exists(key)
                # S3 answers 409 while another write or delete of the key goes on: nothing is there yet
                if found is None:
                    raise _AgainError("the object is being written by another") from error
                if uncertain and len(data) and found[0] == bytes(data):
                    return found[1]
                raise FileExistsError(key) from error
            except BaseError as error:
                uncertain = uncertain or fault_of(error).passes
                raise

        return self._tried("put", key, attempt)

    def replace(self, key: str, data: bytes, expected: Version) -> Version:
        """Write an object in place of the version that was read. ConditionFailedError when it is not that one
        any more. The bytes must differ from those of every other writer.
        """
        from obstore import put
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        def attempt() -> Version:
            mode: Any = expected.condition
            try:
                return _version(put(self._store, key, data, mode=mode, use_multipart=False))
            except (AlreadyExistsError, PreconditionError) as error:
                found = self._read_if_exists(key)
                # an earlier attempt whose answer was lost
                if found is not None and found[0] == data:
                    return found[1]
                if found is not None and found[1] == expected:
                    raise _AgainError("the object is being written by another") from error
                raise ConditionFailedError(key) from error

        return self._tried("put", key, attempt)

    def put(self, key: str, data: bytes | memoryview) -> Version:
        """Write an object, over any that is there."""
        from obstore import put

        return self._tried(
            "put", key, lambda: _version(put(self._store, key, data, mode="overwrite", use_multipart=False))
        )

    def upload(self, key: str, path: os.PathLike[str]) -> None:
        """Write a file of this machine as one object, in parts when it is large; readers see it whole or not
        at all.
        """
        from pathlib import Path

        from obstore import put

        # in one request where that is possible: parts that a killed process leaves stay in the bucket, unseen
        size = Path(path).stat().st_size
        large = size > WHOLE_BYTES

        def attempt() -> Version:
            return _version(
                put(
                    self._store,
                    key,
                    Path(path),
                    use_multipart=large,
                    chunk_size=PART_BYTES,
                    max_concurrency=2,
                    mode="overwrite",
                )
            )

        self._tried("put", key, attempt)

    def get(self, key: str) -> tuple[bytes, Version]:
        """Return an object and its version."""
        from obstore import get

        def attempt() -> tuple[bytes, Version]:
            result = get(self._store, key)
            meta = result.meta
            return bytes(result.bytes()), Version(meta["e_tag"], meta["version"])

        return self._tried("get", key, attempt)

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Return bytes of an object; they must be there."""
        from obstore import get_range

        if not length:
            return b""
        return self._tried(
            "get", key, lambda: bytes(get_range(self._store, key, start=offset, length=length))
        )

    def size(self, key: str) -> int:
        """Return an object's length."""
        return self.info(key).size

    def info(self, key: str) -> StoredObject:
        """Return an object's length and time."""
        from obstore import head

        return _stored(self._tried("head", key, lambda: head(self._store, key)))

    def children(self, prefix: str) -> tuple[list[StoredObject], list[str]]:
        """Return the objects directly below a prefix, and the names of the folders there."""
        from obstore import list_with_delimiter

        found: Any = self._tried("list", prefix, lambda: list_with_delimiter(self._store, prefix or None))
        folders = [path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"]]
        return [_stored(meta) for meta in found["objects"]], sorted(folders)

    def below(self, prefix: str) -> list[StoredObject]:
        """Return all objects below a prefix, sorted by key."""
        from obstore import list as list_objects

        def attempt() -> list[StoredObject]:
            pages: Iterator[Any] = list_objects(self._store, prefix or None)
            return [_stored(meta) for page in pages for meta in page]

        return sorted(self._tried("list", prefix, attempt), key=lambda found: found.key)

    def delete(self, key: str) -> None:
        """Delete an object; does nothing when it is gone."""
        from obstore import delete

        try:
            self._tried("delete", key, lambda: delete(self._store, key))
        except FileNotFoundError:
            return

    def copy(self, source: str, target: str) -> None:
        """Copy an object within the store, over any that is there."""
        from obstore import copy

        self._tried("copy", source, lambda: copy(self._store, source, target, overwrite=True))

    def _read_if_exists(self, key: str) -> tuple[bytes, Version] | None:
        try:
            return self.get(key)
        except FileNotFoundError:
            return None

    def _tried(self, verb: str, key: str, attempt: Callable[[], _Result]) -> _Result:
        """Do a request, and again while its failure may pass."""
        from obstore.exceptions import BaseError

        for number in range(1, self._attempts + 1):
            self.counts[f"{verb}s"] += 1
            try:
                return attempt()
            except (FileExistsError, ConditionFailedError, PenstockError):
                raise
            except FileNotFoundError as error:
                fault = fault_of(error)
                if fault.code is None:  # the object is missing, and not its bucket
                    raise FileNotFoundError(key) from error
            except _AgainError as error:
                fault = StoreFault("DAT-5509", str(error), passes=True)
            except BaseError as error:
                fault = fault_of(error)
            if not fault.passes or number == self._attempts:
                raise self._error(verb, key, fault, number)
            self.counts["retries"] += 1
            self.report(f"{self.where}: {fault.sentence}; it is tried again (attempt {number})")
            self._pause(_FIRST_PAUSE_S * 2 ** (number - 1))
        raise AssertionError("the last attempt returns or raises")

    def _error(self, verb: str, key: str, fault: StoreFault, attempts: int) -> PenstockError:
        tried = f" after {attempts} attempts" if attempts > 1 else ""
        return PenstockError(
            fault.code or "DAT-5510",
            f"{self.where} cannot be reached ({verb} {key}){tried}: {fault.sentence}"
            if fault.passes
            else f"{self.where} refuses {verb} {key}: {fault.sentence}",
            detail=fault.detail,
            hint=fault.hint,
            kind=Kind.EXTERNAL,
            retriable=fault.passes,
            sqlstate="58030",
        )


class _AgainError(Exception):
    """The attempt has decided nothing."""


def client_of(
    url: ObjectUrl,
    options: Mapping[str, str] | None = None,
    *,
    told: Callable[[str], None] | None = None,
    attempts: int = ATTEMPTS,
) -> ObjectClient:
    """Return a client of a URL's bucket. ``options``: settings of the library that override the environment.

    DAT-5502 where the library is not installed, DAT-5503 for settings it does not take.
    """
    try:
        from obstore.store import AzureStore, GCSStore, S3Store
    except ImportError as error:
        raise PenstockError(
            "DAT-5502",
            f"{url.scheme}:// needs the package obstore, which is not installed",
            hint="pip install 'penstock[storage]'",
            kind=Kind.USER,
            sqlstate="0A000",
        ) from error
    config: dict[str, Any] = dict(options or {})
    endpoint = config.get("endpoint") or _environment_endpoint() if url.scheme == "s3" else ""
    common: dict[str, Any] = {
        "client_options": {
            "allow_http": str(endpoint).startswith("http://"),
            "timeout": f"{_TIMEOUT_S}s",
            "connect_timeout": f"{_CONNECT_TIMEOUT_S}s",
        },
        "retry_config": {"max_retries": 0, "retry_timeout": timedelta(seconds=_TIMEOUT_S)},
    }
    try:
        store: Any
        made: Any = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}[url.scheme]
        if url.scheme == "s3":
            # one request a key: some servers lack the one for many, and one key is all that is ever deleted
            config.setdefault("disable_bulk_delete", True)
            # boto's name of the region beside the library's own
            region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
            if region and "region" not in config:
                config["region"] = region
        store = made(url.bucket, config=config, **common)
    except Exception as error:
        fault = fault_of(error)
        raise PenstockError(
            "DAT-5503",
            f"the settings of {url.scheme}://{url.bucket} are not taken: {fault.sentence}",
            hint="see docs/OBJECT_STORAGE.md for the settings and variables of each store",
            kind=Kind.USER,
            sqlstate="22023",
        ) from error
    return ObjectClient(store, f"{url.scheme}://{url.bucket}", told=told, attempts=attempts)


def _environment_endpoint() -> str:
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return next((value for name in names if (value := os.environ.get(name))), "")


def _version(result: Any) -> Version:
    return Version(result["e_tag"], result["version"])


def _stored(meta: Mapping[str, Any]) -> StoredObject:
    return StoredObject(str(meta["path"]), int(meta["size"]), int(meta["last_modified"].timestamp() * 1e6))
