"""Which files and hosts the tables of clients may reach: what the operator has allowed, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from penstock.catalog.errors import PenstockError

_LAST_WORD = re.compile(r"[^a-z0-9]+")
_GLOB = re.compile(r"[*?\[{]")
_FILE_WORDS = frozenset({"path", "location", "keytab", "file", "warehouse", "dir", "directory"})
_HOST_WORDS = frozenset({"url", "uri", "hostname", "host", "servers", "server", "endpoint", "broker"})
UNBOUND_CONNECTORS = ("spark", "python")
"""Connectors that reach whatever their own configuration reaches: no option says what."""
_FILE_SCHEMES = ("sqlite:", "duckdb:", "file:")
_HOSTS_OF_QUERY = ("host", "hostaddr")
"""Parameters of a PostgreSQL URL that replace the host before its path."""


class Reach(StrEnum):
    """What the value of an option reaches."""

    FILES = "files"
    HOSTS = "hosts"


def reach_of(key: str) -> Reach | None:
    """Return what the value of an option of this key reaches, by the last word of the key."""
    word = _LAST_WORD.split(key.lower())[-1]
    if word in _FILE_WORDS:
        return Reach.FILES
    return Reach.HOSTS if word in _HOST_WORDS else None


@dataclass(frozen=True)
class AccessPolicy:
    """What clients without the role ADMIN may reach. ``paths``: directories of this machine, and beginnings
    of URLs such as ``s3://bucket/shop/``. ``hosts``: names, with ``*`` for any letters, and a port where one
    is meant. Empty: nothing.
    """

    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    def check_table(self, connector: str, options: Mapping[str, str]) -> None:
        """Raise CLI-6216 for the options of a table that reach a file or a host that is not allowed.

        A path is compared after its links are resolved. A link that is changed after this check is not
        noticed: allow directories that only trusted users write to.
        """
        if connector in UNBOUND_CONNECTORS:
            raise _refused(f"connector {connector}", "an administrator declares the table")
        for key, value in options.items():
            match reach_of(key):
                case Reach.FILES:
                    self.check_path(key, value)
                case Reach.HOSTS:
                    self._check_hosts(key, value)

    def check_path(self, key: str, value: str) -> None:
        """Raise CLI-6216 for a path, or the URL of an object store, outside of what is allowed."""
        local = _local_path(value)
        if local is None:
            is_allowed = any(_is_below(value, allowed) for allowed in self.paths if "://" in allowed)
        else:
            is_allowed = any(
                local.is_relative_to(Path(allowed).resolve())
                for allowed in self.paths
                if "://" not in allowed
            )
        if not is_allowed:
            raise _refused(
                f"'{key}' = '{value}'", f"the operator adds it by --allowed-path; {_listed(self.paths)}"
            )

    def _check_hosts(self, key: str, value: str) -> None:
        # the catalog of an Iceberg table may be a file: sqlite:////data/catalog.db
        if value.lower().startswith(_FILE_SCHEMES):
            self.check_path(key, "/" + unquote(urlsplit(value).path).lstrip("/"))
            return
        found = list(_hosts_in(value))
        for host, port in found:
            if not any(_is_host(host, port, allowed) for allowed in self.hosts):
                raise _refused(
                    f"'{key}'", f"the operator adds {host} by --allowed-host; {_listed(self.hosts)}"
                )
        if not found:
            raise _refused(f"'{key}'", "it names no host that could be allowed; write one into it")


def _local_path(value: str) -> Path | None:
    """Return the directory that a local path or a glob of files begins in, links resolved; None for the URL
    of another store.
    """
    if value.lower().startswith("file:"):
        value = unquote(urlsplit(value).path)
    elif "://" in value:
        return None
    # a glob reaches what is below the part before its first special letter
    fixed = _GLOB.split(value, maxsplit=1)[0]
    begin = fixed if fixed == value else fixed.rpartition("/")[0] or "."
    try:
        # as the connectors read it: ~ is the home of the server's user
        return Path(begin).expanduser().resolve()
    # a loop of links, or a user without a home: nothing that could be allowed
    except (OSError, RuntimeError):
        return Path("/dev/null")


def _is_below(url: str, allowed: str) -> bool:
    # s3://shop must not allow s3://shop-secrets, and .. must not lead out
    begin = allowed if allowed.endswith("/") else f"{allowed}/"
    return (url == allowed or url.startswith(begin)) and ".." not in unquote(url).split("/")


def _hosts_in(value: str) -> Iterator[tuple[str, str]]:
    """Yield the (host, port) of each address of an option: a URL, a host, or a list of these."""
    for address in value.split(","):
        text = address.strip()
        if "://" in text:
            parts = urlsplit(text)
            query = parse_qs(parts.query)
            for key in _HOSTS_OF_QUERY:
                for host in query.get(key, ()):
                    yield host.lower(), ""
            _, _, location = parts.netloc.rpartition("@")
            text = location
        if not text:
            continue
        # [::1]:9092
        if text.startswith("["):
            host, _, port = text[1:].partition("]")
            yield host.lower(), port.removeprefix(":")
        else:
            host, _, port = text.partition(":")
            yield host.lower(), port


def _is_host(host: str, port: str, allowed: str) -> bool:
    name, _, only_port = (
        allowed.lower().partition(":") if not allowed.startswith("[") else (allowed[1:-1], "", "")
    )
    return fnmatchcase(host, name) and only_port in ("", port)


def _listed(allowed: Sequence[str]) -> str:
    return f"allowed are {', '.join(allowed)}" if allowed else "none is allowed yet"


def _refused(what: str, hint: str) -> PenstockError:
    return PenstockError(
        "CLI-6216", f"{what} reaches what clients of this server may not reach", hint=hint, sqlstate="42501"
    )
