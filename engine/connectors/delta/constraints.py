"""What a Delta table demands of those who write to it: its features, its partition columns, its constraints.

The library checks constraints and computes generated columns. What it refuses is said here in words of ours.
Such an error is of the rows or the table: to try again helps nobody.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.connectors.delta.delta_table import partition_columns, unsupported, words_of
from penstock.engine.connectors.lakehouse.columns import column_named

_FEATURES = re.compile(r"Unsupported table features required: \[(.*?)\]")
_UNKNOWN = re.compile(r'Unknown\("(\w+)"\)')
_BROKEN = re.compile(r"failed validation check|non-nullable but contains null")
_FUNCTION = re.compile(r"Invalid function '\w+'")
# by Rust's way of writing a negative decimal in two parts: -1.50 becomes -1.-50
_DECIMAL = re.compile(r"Failed to parse value '-?\d+\.-\d+' as 'decimal")


def check_partitions(found: Any, there: pa.Schema, key: tuple[str, ...], where: str) -> None:
    """Refuse partition columns whose values are not read back as they were written. DAT-5307."""
    keys = {name.lower() for name in key}
    for name in partition_columns(found):
        kind = there.field(name).type
        binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
        # 0.0 and -0.0 are one key, and two partitions
        if binary or (pa.types.is_floating(kind) and name.lower() in keys):
            what = "BYTES" if binary else f"a {kind}, and one of the key"
            raise PenstockError(
                "DAT-5307",
                f"{where} is partitioned by {name}, which is {what}: such values do not come back as written",
                hint="partition the table by another column, such as a STRING",
                kind=Kind.EXTERNAL,
                sqlstate="0A000",
            )


def generated_columns(found: Any) -> frozenset[str]:
    """Return the columns that the library computes where they are not written."""
    return frozenset(
        field.name
        for field in found.schema().fields
        if "delta.generationExpression" in (field.metadata or {})
    )


def strict_partitions(found: Any, there: pa.Schema, key: tuple[str, ...]) -> tuple[str, ...]:
    """Return the partition columns of texts in which an empty text would be lost: those of the key, and those
    that allow no NULL.
    """
    keys = {name.lower() for name in key}
    return tuple(
        name
        for name in partition_columns(found)
        if _is_text(there.field(name).type) and (name.lower() in keys or not there.field(name).nullable)
    )


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def refuse_empty_texts(rows: pa.RecordBatch, columns: tuple[str, ...], where: str) -> None:
    """Refuse an empty text in a partition column that needs a value: Delta's protocol reads it as NULL.
    DAT-5314.
    """
    for name in columns:
        place = column_named(rows.schema, name)
        if place is not None and pc.any(pc.equal(rows.column(place), "")).as_py():
            raise PenstockError(
                "DAT-5314",
                f"a row has an empty text in {name}, by which {where} is partitioned: Delta reads it as NULL",
                hint=f"leave such rows out, WHERE {name} <> '', or give {name} another value",
                kind=Kind.USER,
                sqlstate="23502",
            )


def _spelled(features: str) -> str:
    """Return the library's names of features as the protocol spells them."""
    names = _UNKNOWN.sub(r"\1", features).split(", ")
    return ", ".join(sorted(name[:1].lower() + name[1:] for name in names))


def refused_commit(where: str, error: Exception) -> PenstockError | None:
    """Return the error of a commit that contradicts the table, ``None`` for any other failure."""
    words = words_of(error)
    if features := _FEATURES.search(words):
        return unsupported(where, "write", _spelled(features[1]))
    if _BROKEN.search(words):
        return PenstockError(
            "DAT-5314",
            f"a row breaks a constraint of {where}: CHECK, an invariant, or a generated column",
            detail=words,
            hint="filter or mend such rows in the query; DESCRIBE DETAIL in Spark lists the constraints",
            kind=Kind.USER,
            sqlstate="23514",
        )
    if _FUNCTION.search(words):
        return PenstockError(
            "DAT-5305",
            f"{where} has a constraint or a generated column with a function that its library has not",
            detail=words,
            hint="drop the constraint, or write to a table without it",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )
    if _DECIMAL.search(words):
        return PenstockError(
            "DAT-5314",
            f"a row has a negative decimal in a partition column of {where}, which its library cannot write",
            detail=words,
            hint="partition the table by another column, such as the decimal as a STRING",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )
    # of a commit without another writer: a property of the table
    if "append-only" in str(error):
        return PenstockError(
            "DAT-5304",
            f"{where} takes no updates and deletions: its property delta.appendOnly is true",
            hint="declare the table without PRIMARY KEY and write inserts only, or unset the property",
            kind=Kind.EXTERNAL,
            sqlstate="55000",
        )
    return None
