"""Partition directories, ``column=value``. Hive, Spark and DuckDB read what is written here, and their
spellings are read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote, unquote_to_bytes

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.formats.text_conversion import to_text

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# Spark reads %XX as the character of that code, not as a byte of UTF-8: only ASCII is escaped, all else
# is written unchanged.
_ESCAPED = re.compile(r"[\x00-\x1f!-,/:-@\[-^`{-\x7f]")


def partition_directory(names: Sequence[str], values: Sequence[pa.Array]) -> str:
    """Return the directories of one combination of partition values, each an array of one value. DAT-4608 for
    BYTES that are not text.
    """
    return "/".join(
        f"{_escape(name)}={_written(name, value)}" for name, value in zip(names, values, strict=True)
    )


def partition_values(relative: str) -> Mapping[str, str | None]:
    """Return the partition values in the directories of a file's path below its table, by column in lower
    case; NULL is ``None``.

    An empty text is not NULL here, although Spark writes both as NULL.
    """
    # the last part is the file's own name
    pairs = (part.split("=", 1) for part in relative.split("/")[:-1] if "=" in part)
    return {
        _unescape(name).lower(): None if value == NULL_PARTITION else _unescape(value)
        for name, value in pairs
    }


def _written(name: str, value: pa.Array) -> str:
    try:
        text = to_text(value)[0].as_py()
    except pa.ArrowInvalid as error:
        message = (
            f"a value of column {name} is bytes that are no text (UTF-8), which a directory's name "
            "cannot hold"
        )
        raise PenstockError(
            "DAT-4608", message, hint=f"partition by hex({name})", kind=Kind.USER, sqlstate="22021"
        ) from error
    if text is None:
        return NULL_PARTITION
    # A text that reads as NULL's own word is written with an escape in it.
    return "%5F" + text[1:] if text == NULL_PARTITION else _escape(text)


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _unescape(text: str) -> str:
    """Decode %XX as UTF-8 bytes, as DuckDB and earlier versions write them, else as Hive does, as the
    character of that code.
    """
    try:
        unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return unquote(text, "latin-1")
    return unquote(text)
