"""The predicate of some partitions of a Delta table, as text of its library."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError


def partition_predicate(partitions: pa.Table, columns: Sequence[str], where: str) -> str:
    """Return ``day = '2026-01-01' AND hr = 3 OR ..``; ``columns``: their names in the table. DAT-5305 for
    BYTES, of which the library writes no constant.
    """
    texts = [_comparisons(c, partitions.column(place), where) for place, c in enumerate(columns)]
    # a piece a partition: they are few
    return " OR ".join(f"({' AND '.join(parts)})" for parts in zip(*texts, strict=True))


def _comparisons(column: str, values: pa.ChunkedArray, where: str) -> list[str]:
    kind, name = values.type, f"`{column}`"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise PenstockError(
            "DAT-5305",
            f"partitions of {where} by {column}, which is BYTES, cannot be overwritten",
            hint="leave PARTITIONED BY out: the whole table is overwritten then",
            kind=Kind.USER,
            sqlstate="0A000",
        )
    plain = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
    texts = values.cast(pa.string()).to_pylist()
    return [
        f"{name} IS NULL" if text is None else f"{name} = {text if plain else _quoted(text)}"
        for text in texts
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
