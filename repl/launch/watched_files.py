"""The files of scripts, and whether one was saved: those of the command line, and those they include."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

# \i and \ir of the shell; the second is relative to the script it is in
_INCLUDE = re.compile(r"^[ \t]*\\(i|ir|include|include_relative)[ \t]+(\S.*?)[ \t]*;?[ \t]*$", re.MULTILINE)
# what a save changes; editors that replace a file change its inode
Fingerprint = tuple[int, int, int]


def file_fingerprint(path: Path) -> Fingerprint | None:
    """Return what a save of a file changes; ``None`` while there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class WatchedFiles:
    """Tells when a script was saved. A file that vanishes is being replaced: only its return is a save.

    A save counts once a file looks the same in two polls: an editor may write it in several steps.
    """

    def __init__(
        self, names: Iterable[str], fingerprint: Callable[[Path], Fingerprint | None] = file_fingerprint
    ) -> None:
        self._names = list(names)
        self._fingerprint = fingerprint
        self._seen: dict[Path, Fingerprint | None] = {}
        self._changed: dict[Path, Fingerprint] = {}
        self.look()

    def look(self) -> None:
        """Regard the files as they are now as seen; what they include by now is watched too."""
        # before the text is read, so that a save in between counts
        self._seen, self._changed = {}, {}
        waiting = [Path(name) for name in self._names]
        while waiting:
            path = waiting.pop()
            if path not in self._seen:
                self._seen[path] = self._fingerprint(path)
                waiting += _included(path)

    def poll(self) -> Path | None:
        """Return a file that was saved since the last ``look``, or ``None``."""
        for path, seen in self._seen.items():
            now = self._fingerprint(path)
            if now is None or now == seen:
                self._changed.pop(path, None)
            elif self._changed.get(path) == now:
                return path
            else:
                self._changed[path] = now
        return None


def _included(path: Path) -> list[Path]:
    """Return the files that a script includes; none of a file that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for command, name in _INCLUDE.findall(text):
        plain = name.strip("'\"")
        # \i is relative to the working directory, as in psql
        found.append(path.parent / plain if command in ("ir", "include_relative") else Path(plain))
    return found
