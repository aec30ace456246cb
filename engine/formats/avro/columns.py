"""The columns that a reader's program fills: their nodes in the buffers of the kernel, and the Arrow arrays
made of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.catalog.types import Array, Binary, DataType, Decimal, Map, Row, String, to_arrow
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels.arrow_views import NO_BYTES, array_of_wide_words, array_of_words, bitmap
from penstock.engine.kernels.avro.operations import NODE_WIDTH

MOST_BYTES = (1 << 31) - 1
"""Offsets of texts are int32."""


@dataclass(eq=False)
class OutputColumn:
    """A column at any depth: its node, and the group that counts its items. ``children``: the fields of a
    row, the element of a list, key and value of a map, in the group ``inner``.
    """

    kind: DataType
    node: int
    group: int
    nullable: bool
    children: list[OutputColumn] = field(default_factory=list)
    inner: int = -1

    @property
    def is_text(self) -> bool:
        """Whether the words are ends of texts."""
        return isinstance(self.kind, String | Binary)

    @property
    def is_list(self) -> bool:
        """Whether the words are ends in the group ``inner``."""
        return isinstance(self.kind, Array | Map)

    @property
    def stride(self) -> int:
        """The words of an item: two of a decimal, none of a row."""
        return 2 if isinstance(self.kind, Decimal) else 0 if isinstance(self.kind, Row) else 1


class ColumnLayout:
    """Numbers the nodes and groups of a program; group 0 counts rows."""

    def __init__(self) -> None:
        self.columns: list[OutputColumn] = []
        self.groups = 1

    def column(self, kind: DataType, group: int, nullable: bool) -> OutputColumn:
        """Return a new column with its children."""
        made = OutputColumn(kind, len(self.columns), group, nullable)
        self.columns.append(made)
        if isinstance(kind, Row):
            made.children = [self.column(part, group, True) for _, part in kind.fields]
        elif made.is_list:
            made.inner = self.groups
            self.groups += 1
            if isinstance(kind, Map):
                made.children = [self.column(kind.key, made.inner, False)]
                made.children.append(self.column(kind.value, made.inner, True))
            elif isinstance(kind, Array):
                made.children = [self.column(kind.element, made.inner, True)]
        return made


class ColumnBuffers:
    """What the kernel fills: words, validity and bytes of all nodes, each with a part of its own."""

    def __init__(self, layout: ColumnLayout, limits: list[int], text_bytes: int) -> None:
        """``limits``: how many items each group may have; ``text_bytes``: how many bytes each text node."""
        self._layout = layout
        columns = layout.columns
        self.nodes = np.zeros(max(1, len(columns)) * NODE_WIDTH, np.int64)
        words = valid = octets = 0
        text_bytes = min(text_bytes, MOST_BYTES)
        for column in columns:
            size = limits[column.group]
            self.nodes[column.node * NODE_WIDTH : (column.node + 1) * NODE_WIDTH] = (
                words,
                valid,
                octets,
                text_bytes,
            )
            words += size * column.stride
            valid += size
            octets += text_bytes if column.is_text else 0
        # memory that is not written takes no pages
        self.words = np.empty(max(1, words), np.int64)
        self.numbers = self.words.view(np.float64)
        self.valid = np.empty(max(1, valid), np.uint8)
        self.octets = np.empty(max(1, octets), np.uint8)
        self.groups = np.zeros(layout.groups, np.int64)
        self.limits = np.array(limits, np.int64)

    def array(self, column: OutputColumn) -> pa.Array:
        """Return the items of a column; whether a STRING is UTF-8 is not tested."""
        count = int(self.groups[column.group])
        first, valid_first, octets_first, _ = self.nodes[column.node * NODE_WIDTH :][:NODE_WIDTH].tolist()
        valid = self.valid[valid_first : valid_first + count]
        valid = NO_BYTES if valid.all() else valid
        arrow = to_arrow(column.kind)
        words = self.words[first : first + count * column.stride]
        if column.is_text:
            return self._text(words, self.octets[octets_first:], valid, arrow)
        if column.is_list:
            return self._list(column, words, valid, arrow)
        if isinstance(column.kind, Row):
            return pa.StructArray.from_arrays(
                [self.array(child) for child in column.children],
                fields=list(arrow),
                mask=None if not valid.size else array_of(valid == 0),
            )
        if column.stride == 2:
            pairs = words.reshape(-1, 2)
            return array_of_wide_words(pairs[:, 0], pairs[:, 1], valid, arrow)
        return array_of_words(words, valid, arrow)

    def _text(self, ends: np.ndarray, octets: np.ndarray, valid: np.ndarray, arrow: pa.DataType) -> pa.Array:
        offsets = np.zeros(len(ends) + 1, np.int32)
        offsets[1:] = ends
        data = pa.py_buffer(octets[: offsets[-1]])
        return pa.Array.from_buffers(arrow, len(ends), [bitmap(valid), pa.py_buffer(offsets), data])

    def _list(
        self, column: OutputColumn, ends: np.ndarray, valid: np.ndarray, arrow: pa.DataType
    ) -> pa.Array:
        offsets = np.zeros(len(ends) + 1, np.int32)
        offsets[1:] = ends
        parts = [self.array(child) for child in column.children]
        inner: pa.Array = parts[0]
        if isinstance(column.kind, Map):
            entry = pa.struct([arrow.key_field, arrow.item_field])
            inner = pa.StructArray.from_arrays(parts, fields=list(entry))
        buffers = [bitmap(valid), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(arrow, len(ends), buffers, children=[inner])

    def rows_of_items(
        self, column: OutputColumn, items: np.ndarray, parents: dict[int, OutputColumn]
    ) -> np.ndarray:
        """Return the row in which each of some items of a column is. ``parents``: the list of each group."""
        group = column.group
        while group:
            owner = parents[group]
            first = int(self.nodes[owner.node * NODE_WIDTH])
            ends = self.words[first : first + int(self.groups[owner.group])]
            # the first list that ends behind the item
            items = np.searchsorted(ends, items, "right")
            group = owner.group
        return items


def lists_by_group(layout: ColumnLayout) -> dict[int, OutputColumn]:
    """Return the list of each group of elements."""
    return {column.inner: column for column in layout.columns if column.is_list}


def map_columns(layout: ColumnLayout) -> list[OutputColumn]:
    """Return the columns that are maps."""
    return [column for column in layout.columns if isinstance(column.kind, Map)]
