"""What a sample of a text file may have that no reader of ours reads as it is meant. Each is refused with
what mends it.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.secrets import redact_url
from penstock.engine.formats.file_task import CsvDialect

_BOMS_16 = (b"\xff\xfe", b"\xfe\xff")
# first bytes of files that are compressed though their names do not say so
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_DELIMITERS = (",", ";", "\t", "|")
# records that decide whether a file that looks like one column has more
_RECORDS = 200


@dataclass(frozen=True)
class TextSample:
    """The first bytes of a file, decompressed; ``whole``: they are all of it."""

    path: str
    data: bytes
    whole: bool
    is_csv: bool = True

    @property
    def shown(self) -> str:
        """The path as messages show it."""
        return redact_url(self.path)


def refuse_binary(sample: TextSample) -> None:
    """Refuse what is compressed, in another encoding than UTF-8, or no text."""
    for magic, name in _COMPRESSED.items():
        if sample.data.startswith(magic):
            reader = "read_csv" if sample.is_csv else "read_json"
            hint = f"write 'compression' = '{name}', or compression => '{name}' in {reader}"
            raise _refusal(
                "DAT-4121", f"{sample.shown} is compressed by {name}; its name does not say so", hint
            )
    if sample.data.startswith(_BOMS_16):
        raise not_utf_8(sample, "'utf-16'")
    try:
        sample.data.decode()
    except UnicodeDecodeError as error:
        # a last character may be cut off, where the sample has no line end
        if sample.whole or error.start < len(sample.data) - 4:
            raise not_utf_8(sample, "'windows-1252'") from None
    # a zero byte is in no text of UTF-8 that people write, and in nearly every binary format
    if b"\0" in sample.data[:4096]:
        hint = (
            "is it compressed, or of another format? write 'format' = .. or 'compression' = .., or save it "
            "as csv in UTF-8"
        )
        raise _refusal("DAT-4121", f"{sample.shown} is no text file", hint)


def not_utf_8(sample: TextSample, likely: str) -> PenstockError:
    """Return the error of a file in another encoding; ``likely``: its name, in quotes."""
    hint = f"write 'csv.encoding' = {likely}, or encoding => {likely} in read_csv"
    if not sample.is_csv:
        hint = f"convert it: iconv -f {likely.strip(chr(39))} -t utf-8 FILE > NEW"
    return PenstockError(
        "DAT-4125", f"{sample.shown} is not UTF-8", hint=hint, kind=Kind.EXTERNAL, sqlstate="22021"
    )


def refuse_no_csv(sample: TextSample) -> None:
    """Refuse what is text and no csv, and csv whose lines no reader of ours tells apart."""
    data = sample.data.lstrip()
    if re.match(rb'\{\s*"[^\n]*\}\s*$', data.partition(b"\n")[0]):
        path = "-" if sample.path == "stdin" else sample.shown
        hint = f"read it as JSON: read_json('{path}'), or 'format' = 'json'"
        raise _refusal("DAT-4121", f"{sample.shown} holds JSON, not csv", hint)
    if re.match(rb"<(!doctype|html|\?xml)", data, re.IGNORECASE):
        hint = "was an error page saved in place of the file? download it again"
        raise _refusal("DAT-4121", f"{sample.shown} is a page of HTML or XML, not csv", hint)
    if b"\r" in sample.data and b"\n" not in sample.data:
        hint = "write line feeds: tr '\\r' '\\n' < FILE > NEW"
        raise _refusal("DAT-4122", f"the lines of {sample.shown} end in a carriage return alone", hint)
    if re.match(rb"sep=.\r?\n", sample.data):
        message = f"{sample.shown} begins with a line of Excel, sep=, that is no record"
        raise _refusal("DAT-4122", message, "remove it first: tail -n +2 FILE > NEW")


def refuse_mixed_ends(sample: TextSample) -> None:
    """Refuse a sample that the sniffer could not read, if its lines end in several ways: DuckDB reads one."""
    if b"\r\n" in sample.data and re.search(rb"[^\r]\n", sample.data):
        message = f"some lines of {sample.shown} end in CRLF and some in LF"
        raise _refusal("DAT-4122", message, "write one kind: tr -d '\\r' < FILE > NEW")


def refuse_odd_records(sample: TextSample, dialect: CsvDialect, width: int) -> None:
    """Refuse records that the readers read in different ways: with one more delimiter than the header, or
    with quotes written as \\".
    """
    records = _records(sample, dialect.delimiter, dialect.quote)
    if dialect.header and any(len(record) == width + 1 and not record[-1] for record in records[1:]):
        hint = f"remove the last one of each record: sed 's/{_sed(dialect.delimiter)}$//' FILE > NEW"
        message = f"records of {sample.shown} end in a delimiter that the header does not have"
        raise _refusal("DAT-4122", message, hint)
    slash = f"\\{dialect.quote}".encode()
    opened = f"{dialect.delimiter}{dialect.quote}".encode()
    if slash in sample.data and re.search(re.escape(opened) + rb"[^\n]*" + re.escape(slash), sample.data):
        hint = 'write two quotes for one: sed \'s/\\\\"/""/g\' FILE > NEW'
        raise _refusal("DAT-4122", f"{sample.shown} has a backslash before a quote in a value", hint)


def delimiter_of_header(sample: TextSample, dialect: CsvDialect) -> str | None:
    """Return the delimiter that cuts the first line and most records into equally many values, or None.

    The sniffer finds none where a record has too many values or too few.
    """
    first = sample.data.partition(b"\n")[0].decode(errors="replace")
    for delimiter, _ in Counter(mark for mark in first if mark in _DELIMITERS).most_common():
        widths = [len(record) for record in _records(sample, delimiter, dialect.quote) if record]
        if widths and widths[0] > 1 and 2 * widths.count(widths[0]) > len(widths):
            return delimiter
    return None


def _records(sample: TextSample, delimiter: str, quote: str) -> list[list[str]]:
    lines = io.StringIO(sample.data.decode(errors="replace"), newline="")
    try:
        return list(itertools.islice(csv.reader(lines, delimiter=delimiter, quotechar=quote), _RECORDS))
    except csv.Error:  # a value larger than it takes
        return []


def _sed(delimiter: str) -> str:
    return {"\t": "\\t", "|": "|"}.get(delimiter, delimiter)


def _refusal(code: str, message: str, hint: str) -> PenstockError:
    return PenstockError(code, message, hint=hint, kind=Kind.EXTERNAL)
