"""The storage interface: six verbs (create-exclusive, append, sync, publish, list, delete), reading, and a
lock. Checkpoints are written with it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Protocol

from penstock.catalog.errors import Kind, PenstockError

STAGED_SUFFIX = ".tmp"
"""Of a file that is written to be published: nobody but its writer sees it, and it may be lost until then."""
NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
# Names that are safe as they are: no leading dot or dash, at most 80 characters.
_PLAIN = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,78}[A-Za-z0-9_])?")
_MADE = re.compile(r".*\.([0-9a-f]{16}|dropped)")
"""The pattern of generated names, and of a state that was set aside."""


class Storage(Protocol):
    """A flat directory of append-only files. After power loss, unsynced bytes may be missing, and names whose
    directory was not synced.

    Names match ``[A-Za-z0-9._-]{1,200}``. Every verb raises OSError when the medium fails. ``fences``: a
    writer whose lock was taken over cannot publish. Elsewhere it has to look for a newer epoch first.
    """

    fences: bool

    def create(self, name: str) -> None:
        """Create an empty file; FileExistsError when the name is taken, perhaps by ``sync`` only."""

    def append(self, name: str, data: bytes) -> None:
        """Append bytes to a created file."""

    def sync(self, name: str) -> None:
        """Make a file's bytes durable and finish writing it."""

    def sync_directory(self) -> None:
        """Make the names durable."""

    def publish(self, name: str, target: str) -> None:
        """Atomically rename a synced file, whose name ends in ``.tmp``, to ``target``, replacing any such
        file, and make that durable.
        """

    def list(self) -> list[str]:
        """Return all names, sorted."""

    def delete(self, name: str) -> None:
        """Delete a file; does nothing when it is gone."""

    def size(self, name: str) -> int:
        """Return a file's length in bytes; FileNotFoundError when it does not exist."""

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return bytes of a file (fewer at its end); FileNotFoundError when it does not exist."""

    def lock(self, *, take_over: bool = False) -> None:
        """Lock out other processes until ``close``. STA-3001 when one holds the lock, unless its last renewal
        is too long ago or ``take_over`` is set.
        """

    def shut(self) -> None:
        """Deny other users access, as far as this one can."""

    def location(self) -> str:
        """Return a text that differs between this directory and a copy of it, and stays the same until it is
        moved.
        """

    def renew(self, *, now: bool = False) -> bool:
        """Renew the lock; False when another process has taken it over. Where that takes a request, one is
        made each ten seconds, unless ``now``.
        """

    def close(self) -> None:
        """Close files and release the lock."""


def check_name(name: str) -> str:
    """Return the name; raise STA-3003 for one that could leave the directory."""
    if NAME.fullmatch(name) is None or name in (".", ".."):
        raise PenstockError(
            "STA-3003", f"{name[:80]!r} is no file name of a checkpoint", kind=Kind.EXTERNAL, sqlstate="58030"
        )
    return name


def directory_name(name: str) -> str:
    """Return a directory name for any text: the text itself if it is a valid name, else its readable part and
    a hash. Different texts get different names.
    """
    # a name that looks generated is hashed too, so that it cannot collide with a generated one
    if _PLAIN.fullmatch(name) and not _MADE.fullmatch(name):
        return name
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    # The readable part may be cut; the hash keeps different texts apart.
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", letters).strip("-")[:40].strip("-") or "job"
    return f"{readable}.{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"


def locked(where: str) -> PenstockError:
    """Return the error for a state directory that another process uses."""
    return PenstockError(
        "STA-3001",
        f"the job's state in {where} is in use by another process",
        hint="stop that process first, give this job another state directory or name, or fence that "
        "process off with --take-over",
        kind=Kind.EXTERNAL,
        sqlstate="55006",
    )
