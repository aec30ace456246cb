"""A reader's task: one file or a range of it, and the requested columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.fs as pafs

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.engine.api.scan_pruning import Skipping
from penstock.planner.expressions.nodes import Expression

UTF_8 = "utf-8"
# words of Arrow's errors from a store, which may pass
_REMOTE = ("AWS Error", "Azure", "HDFS", "google::cloud")


@dataclass(frozen=True)
class CsvDialect:
    """How values are written in csv files."""

    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    null_literal: str = ""
    multiline: bool = False
    # a codec's name as Python normalizes it
    encoding: str = UTF_8


@dataclass(frozen=True)
class FileTask:
    """One file to read. ``wanted``: the requested columns, in order; ``declared``: all physical columns of
    the table in order.

    ``start``/``end`` bound a range: bytes for text formats, row groups for parquet. ``predicate`` refers to
    ``wanted`` positions and only serves to skip data: rows that are emitted may still fail it.
    ``in_payload``: each Debezium change is in a payload beside its schema. ``skipping``: further data to
    skip, asked during the read. ``documents``: JSON objects may span lines, or be in an array.
    """

    filesystem: pafs.FileSystem
    path: str
    wanted: tuple[Field, ...]
    declared: tuple[Field, ...]
    compression: str | None = None
    dialect: CsvDialect = CsvDialect()
    start: int = 0
    end: int | None = None
    predicate: Expression | None = None
    batch_rows: int = 32_768
    in_payload: bool = False
    skipping: Skipping | None = None
    documents: bool = False

    def open_seekable(self) -> pa.NativeFile:
        """Open the raw bytes for random access. DAT-4104/4105 when that fails."""
        try:
            # Not mapped into memory: a page of a file that another program cuts short meanwhile would end
            # this process by SIGBUS.
            return self.filesystem.open_input_file(self.path)
        except OSError as error:
            raise unreadable(self.path, error) from error

    @property
    def is_plain(self) -> bool:
        """Whether the file's bytes are those that are parsed, so that reading may begin in the middle."""
        return self.compression is None and self.dialect.encoding == UTF_8 and not self.documents

    def open_stream(self) -> pa.NativeFile:
        """Open the decompressed bytes from the start, in UTF-8."""
        try:
            stream = self.filesystem.open_input_stream(self.path, compression=self.compression)
        except OSError as error:
            raise unreadable(self.path, error) from error
        if self.dialect.encoding == UTF_8:
            return stream
        return pa.transcoding_input_stream(stream, self.dialect.encoding, UTF_8)

    def undecodable(self, error: UnicodeError) -> PenstockError:
        """Return the error for bytes that are not of the table's encoding."""
        return PenstockError(
            "DAT-4125",
            f"{redact_url(self.path)} is not {self.dialect.encoding}",
            detail=str(error)[:200],
            hint="write 'csv.encoding' = the encoding that it has, such as 'utf-8' or 'windows-1252'",
            kind=Kind.EXTERNAL,
            sqlstate="22021",
        )


def unreadable(path: str, error: BaseException) -> PenstockError:
    """Return the error for a file that cannot be opened or read further."""
    name = redact_url(path)
    # Arrow appends the errno as a detail
    reason = str(error).split(" Detail:")[0][:200]
    code, message = "DAT-4105", f"file {name} cannot be read"
    if isinstance(error, PermissionError):
        code, message = "DAT-4104", f"no permission to read {name}"
        hint = "allow it with chmod, or run penstock as a user who may read it"
    elif isinstance(error, FileNotFoundError):
        code, message = "DAT-4101", f"there is no file {name}"
        hint = "it was there when the table was listed: put it back, or run the query again"
    elif may_pass(error):
        hint = "check the disk or the network that it is on"
    else:
        hint = "is it of the format its name or the table says, and whole?"
    return PenstockError(
        code,
        message,
        detail=reason,
        hint=hint,
        kind=Kind.EXTERNAL,
        retriable=may_pass(error),
    )


def may_pass(error: BaseException) -> bool:
    """Return whether a disk or a connection failed. Arrow raises OSError for content it cannot decode as
    well, but then without an errno.
    """
    return isinstance(error, OSError) and (
        error.errno is not None or any(store in str(error) for store in _REMOTE)
    )
