"""The files of a table: a file, a directory or a glob, local or at a URL. The listing includes what
identifies each file's content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import pyarrow.fs as pafs

from penstock.catalog.connectors.filesystem import FILE_KINDS, object_scheme, split_suffixes
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean_file
from penstock.catalog.secrets import redact_url
from penstock.engine.connectors.filesystem.arrow_filesystems import resolve, store_error
from penstock.engine.formats.file_task import unreadable

# path@size-mtime, with #start-end for a range
_SPLIT_ID = re.compile(
    r"(?P<path>.*)@(?P<size>\d+)-(?P<mtime>\d+)(?:#(?P<start>\d+)-(?P<end>\d+))?", re.DOTALL
)
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class FileSplit:
    """One file, or a range of it. ``mtime_us``: time of the last write in microseconds; with path and size it
    identifies the content.
    """

    path: str
    size: int
    mtime_us: int
    range: tuple[int, int] | None = None

    @property
    def split_id(self) -> str:
        """The stable id: path, size, time and range."""
        # padded, so that ranges of a file sort in their order
        cut = "" if self.range is None else f"#{self.range[0]:015d}-{self.range[1]:015d}"
        return f"{self.path}@{self.size}-{self.mtime_us}{cut}"

    @classmethod
    def parse(cls, split_id: str) -> FileSplit:
        """Parse a split id. STA-3501 for a text that is not one."""
        match = _SPLIT_ID.fullmatch(split_id)
        if match is None:
            raise PenstockError(
                "STA-3501", f"'{split_id[:100]}' does not name a split of a file", kind=Kind.EXTERNAL
            )
        cut = None if match["start"] is None else (int(match["start"]), int(match["end"]))
        return cls(match["path"], int(match["size"]), int(match["mtime"]), cut)


class FileListing:
    """Lists the files of a path. Hidden files (a leading dot or underscore in any part below the path) are
    never listed. Without a ``file_format`` the names of files may say any.
    """

    def __init__(
        self, path: str, file_format: str | None, options: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """``options``: those of the table, which may say how an object store is reached."""
        self._shown = redact_url(path)
        self._format = file_format
        self.filesystem, self.root = resolve(path, options)
        self._pattern = None
        # an existing path with such characters is no glob
        if self._info(self.root).type == pafs.FileType.NotFound and _WILDCARD.search(self.root):
            self._pattern = _glob(self.root)
            parts = self.root.split("/")
            # list below the last directory without a wildcard
            first = next(index for index, part in enumerate(parts) if _WILDCARD.search(part))
            self.root = "/".join(parts[:first]) or "/"

    def files(self, *, missing_ok: bool = False) -> list[FileSplit]:
        """Return the files, sorted by path. DAT-4101 to 4108 when there are none, or when the path is not a
        file.
        """
        infos = self._infos(missing_ok)
        if self._pattern is not None and not infos and not missing_ok:
            raise PenstockError(
                "DAT-4102", f"no file matches {self._shown}", hint=self._elsewhere(), kind=Kind.EXTERNAL
            )
        for info in infos:
            self._check(info)
        return sorted(
            (FileSplit(info.path, info.size, info.mtime_ns // 1000) for info in infos),
            key=lambda split: split.path,
        )

    def current(self, path: str) -> FileSplit | None:
        """Return a file's current state; ``None`` when it is gone."""
        info = self._info(path)
        return (
            FileSplit(info.path, info.size, info.mtime_ns // 1000)
            if info.type == pafs.FileType.File
            else None
        )

    def relative(self, path: str) -> str:
        """Return a file's path below the table's path."""
        return path[len(self.root) :].lstrip("/")

    def _infos(self, missing_ok: bool) -> list[pafs.FileInfo]:
        info = self._info(self.root)
        if info.type == pafs.FileType.NotFound:
            if missing_ok:
                return []
            self._check_bucket()
            raise PenstockError(
                "DAT-4101",
                f"there is no file or directory {self._shown}",
                hint=self._elsewhere(),
                kind=Kind.EXTERNAL,
            )
        # the table is one file
        if info.type != pafs.FileType.Directory:
            return [info]
        files = self._listed()
        return (
            files if self._pattern is None else [info for info in files if self._pattern.fullmatch(info.path)]
        )

    def _check_bucket(self) -> None:
        """Refuse a bucket that does not exist: to Arrow nothing is there then, as below an empty prefix."""
        bucket = self.root.partition("/")[0]
        if object_scheme(self._shown) is not None and self._info(bucket).type == pafs.FileType.NotFound:
            raise PenstockError(
                "DAT-5504",
                f"{self._shown} cannot be read: the bucket does not exist",
                hint="make the bucket, or correct its name",
                kind=Kind.EXTERNAL,
            )

    def _info(self, path: str) -> pafs.FileInfo:
        try:
            return self.filesystem.get_file_info(path)
        except OSError as error:
            raise store_error(self._shown, error) or unreadable(self._shown, error) from error

    def _listed(self) -> list[pafs.FileInfo]:
        """Return all files below the root."""
        try:
            infos = self.filesystem.get_file_info(pafs.FileSelector(self.root, recursive=True))
        except OSError as error:
            raise store_error(self._shown, error) or unreadable(self._shown, error) from error
        return [
            info
            for info in infos
            if info.type != pafs.FileType.Directory and not _hidden(self.relative(info.path))
        ]

    def _elsewhere(self) -> str:
        """Suggest an existing path: a file of a similar name, or the directory where relative paths begin."""
        parent, _, name = self.root.rpartition("/")
        if self.filesystem.get_file_info(self.root).type == pafs.FileType.Directory:
            there = [self.relative(info.path) for info in self._listed()]
            if there:
                more = f" and {len(there) - 3} more" if len(there) > 3 else ""
                return f"the directory has {', '.join(sorted(there)[:3])}{more}"
        elif self.filesystem.get_file_info(parent or "/").type == pafs.FileType.Directory:
            beside = [
                info.base_name for info in self.filesystem.get_file_info(pafs.FileSelector(parent or "/"))
            ]
            if (near := did_you_mean_file(name, beside)) is not None:
                return near
        if "." not in name and self._pattern is None:
            return "a table's directory comes to be when the first rows are committed to it"
        return "paths are relative to the directory penstock was started in; * ? [..] and ** match names"

    def _check(self, info: pafs.FileInfo) -> None:
        if info.type != pafs.FileType.File:
            message = f"{redact_url(info.path)} is not a regular file"
            raise PenstockError(
                "DAT-4103", message, hint="give files or a directory of files", kind=Kind.EXTERNAL
            )
        kind, _ = split_suffixes(info.path)
        if self._format is None or kind is None:
            return
        if kind != FILE_KINDS.get(self._format, self._format):
            hint = f"write 'format' = '{kind}', or leave the format out"
            # a stray file in a directory: a glob leaves it out
            if info.path != self.root:
                hint = (
                    f"give a path that names only its {self._format} files, such as "
                    f"'{self._shown.rstrip('/')}/*.{self._format}'"
                )
            message = f"{redact_url(info.path)} is a {kind} file in a table of format {self._format}"
            raise PenstockError("DAT-4108", message, hint=hint, kind=Kind.EXTERNAL)


def _hidden(relative: str) -> bool:
    # _a=1 is a partition, not hidden
    return any(part.startswith((".", "_")) and "=" not in part for part in relative.split("/"))


def _glob(pattern: str) -> re.Pattern[str]:
    """Return a glob as a regular expression: ``*`` and ``?`` match within one part, ``**`` matches any number
    of parts.
    """
    out, index = "", 0
    while index < len(pattern):
        # any number of directories, or none
        if pattern.startswith("**/", index):
            out, index = out + "(?:.*/)?", index + 3
            continue
        char = pattern[index]
        # [abc], [!abc]: a ] directly after the [ is one of the characters
        close = pattern.find("]", index + 2) if char == "[" else -1
        if close > 0:
            inside = pattern[index + 1 : close].replace("\\", "\\\\")
            out, index = out + "[" + ("^" + inside[1:] if inside[0] == "!" else inside) + "]", close + 1
            continue
        # every other character matches itself
        out += {"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char))
        index += 1
    return re.compile(out, re.DOTALL)
