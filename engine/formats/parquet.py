"""Parquet files: row groups in order, requested columns only. Row groups that cannot match are skipped by
their statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from penstock.catalog.types import DATE, STRING, DataType, Timestamp, is_integer, to_arrow
from penstock.engine.formats.column_adapter import ColumnAdapter
from penstock.engine.formats.decoded_batch import Decoded
from penstock.engine.formats.file_task import FileTask, unreadable
from penstock.engine.formats.row_group_probe import ROWS_AT_ONCE, RowGroupProbe
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal, conjuncts

# of a column of a local file: read ahead so much instead of the column's whole piece of a row group. It costs
# nothing (64 to 256 KiB: within 5 % of whole pieces); a remote store would be asked for each of them.
_BUFFER_BYTES = 1 << 18
# So many rows are decoded at once whatever their width; more of them only while they make so many bytes.
# Twice as many rows of 180 bytes cost a last row by key 8 % more processor time: their arrays were new pages.
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 32_768, 4 << 20
# Texts of a column chunk are read as a dictionary and indexes when the chunk holds at most so many bytes and
# so many a value. That is a dictionary of the size at which most writers give it up, and indexes of 24 bits.
# Texts that were written plainly would be hashed, which takes 8 times as long as reading them.
_DICTIONARY_BYTES, _INDEX_BYTES = 1 << 20, 3
# the offsets of a batch's texts have 31 bits
_TEXT_BYTES = (1 << 31) - 1
_FLIPPED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
}


class RowGroupFilter:
    """The conjuncts of a scan's predicate that compare one column with constants, for tests against
    statistics.

    Only types whose statistics order as our comparisons do are used: integers, dates, timestamps without
    zone, strings (not floats: NaN).
    """

    def __init__(self, task: FileTask, file: pq.ParquetFile, names: list[str]) -> None:
        self._metadata = file.metadata
        self._skipping = task.skipping
        # statistics are stored by leaf column: path to its index
        leaves = {file.schema.column(index).path: index for index in range(len(file.schema))}
        self._bounds = []
        comparisons = []
        for part in conjuncts(task.predicate) if task.predicate is not None else ():
            for column, operator, values in _comparison(part):
                field, name = task.wanted[column], names[column]
                if (
                    name in leaves
                    and _comparable(field.type)
                    and file.schema_arrow.field(name).type == to_arrow(field.type)
                ):
                    self._bounds.append((leaves[name], operator, values))
                    comparisons.append((name, operator, values))
        self.probe = RowGroupProbe(file.schema_arrow, comparisons)
        # for runtime filters, which arrive during the read
        self._leaves = {
            field.name: leaves[name]
            for field, name in zip(task.wanted, names, strict=True)
            if name in leaves
            and _comparable(field.type)
            and file.schema_arrow.field(name).type == to_arrow(field.type)
        }

    def may_match(self, group: int) -> bool:
        """Return whether a row group can hold a row for which the predicate is TRUE."""
        return all(self._overlaps(group, *bound) for bound in self._bounds)

    def is_wanted(self, group: int) -> bool:
        """Return whether a row group can contain a matching row, by the filters known now. Skipped row groups
        are counted.
        """
        # no runtime filter for this scan
        if self._skipping is None:
            return True
        rows = self._metadata.row_group(group)
        return self._skipping.wants(
            {name: ends for name, leaf in self._leaves.items() if (ends := _ends(rows, leaf))}, rows.num_rows
        )

    def _overlaps(self, group: int, leaf: int, operator: str, values: tuple[Any, ...]) -> bool:
        ends = _ends(self._metadata.row_group(group), leaf)
        # no statistics: the group may match
        if ends is None:
            return True
        least, greatest = ends
        # statistics of another type cannot be compared
        if any(type(value) is not type(least) for value in values):
            return True
        match operator:
            case "equal":
                return any(least <= value <= greatest for value in values)
            case "less":
                return least < values[0]
            case "less_equal":
                return least <= values[0]
            case "greater":
                return greatest > values[0]
        return greatest >= values[0]


def _ends(group: pq.RowGroupMetaData, leaf: int) -> tuple[Any, Any] | None:
    """Return the minimum and maximum of a column of a row group, where its statistics have them."""
    chunk = group.column(leaf)
    if not chunk.is_stats_set or not chunk.statistics.has_min_max:
        return None
    try:
        return chunk.statistics.min, chunk.statistics.max
    except UnicodeDecodeError:  # a bound cut inside a character
        return None


def _comparable(kind: DataType) -> bool:
    return is_integer(kind) or isinstance(kind, Timestamp) or kind in (DATE, STRING)


def _comparison(part: Expression) -> list[tuple[int, str, tuple[Any, ...]]]:
    """Return (column, operator, constants) when a conjunct compares one column with constants."""
    if not isinstance(part, Call) or not part.args:
        return []
    first, others = part.args[0], part.args[1:]
    # column IN (constants): some constant must lie between the bounds; NULL matches nothing
    if (
        part.function == "in"
        and isinstance(first, Column)
        and all(isinstance(arg, Literal) for arg in others)
    ):
        return [
            (
                first.index,
                "equal",
                tuple(arg.value for arg in others if isinstance(arg, Literal) and arg.value is not None),
            )
        ]
    if part.function not in _FLIPPED or len(part.args) != 2:
        return []
    # column < constant, or constant < column with the operator flipped
    left, right = part.args
    if isinstance(left, Column) and isinstance(right, Literal) and right.value is not None:
        return [(left.index, part.function, (right.value,))]
    if isinstance(right, Column) and isinstance(left, Literal) and left.value is not None:
        return [(right.index, _FLIPPED[part.function], (left.value,))]
    return []


class ParquetReader:
    """Reads the row groups ``start <= group < end`` of one file.

    This is the fastest setup per core that was measured with Arrow: no pre-buffering, no threads (slots are
    the parallelism). Batches are streamed out of one row group at a time, so a position is a row group and a
    row in it.
    """

    def __init__(self, task: FileTask, anchor: dict[str, Any] | None) -> None:
        self._task = task
        self._source = task.open_seekable()
        try:
            self._file = self._open_file(None, [])
        except (OSError, pa.ArrowInvalid) as error:
            self._source.close()
            raise unreadable(task.path, error) from error
        self._adapter = ColumnAdapter(task.path, self._file.schema_arrow, task.wanted)
        self._filter = RowGroupFilter(task, self._file, self._adapter.names)
        self._end = (
            self._file.num_row_groups if task.end is None else min(task.end, self._file.num_row_groups)
        )
        self._texts = DictionaryTexts(self._file, self._adapter.paths, range(task.start, self._end))
        if self._texts.names:
            # its footer is not read again
            self._file = self._open_file(self._file.metadata, self._texts.names)
        self._group = anchor["group"] if anchor else task.start
        # ordinals count from the file's start, whatever the range
        self._ordinal = anchor["row"] if anchor else sum(self._rows_in(group) for group in range(task.start))
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._group_start = self._ordinal
        # about the bytes of a row: of fixed width until a batch was read, 0 while that is not known
        self._row_bytes = _fixed_width(self._adapter.paths, self._file.schema_arrow)

    def next(self) -> Decoded | None:
        # the next batch of the open row group, else the next group that may match
        while self._group < self._end:
            if self._batches is None:
                self._group_start = self._ordinal
                if not (
                    self._filter.may_match(self._group)
                    and self._filter.is_wanted(self._group)
                    and self._passes(self._group)
                ):
                    self._skip_group()
                    continue
                self._batches = self._open_group()
            batch = next(self._batches, None)
            if batch is not None:
                return self._decode(batch)
            self._batches = None
            # the batches may have been fewer than the group's rows: count on from its start
            self._ordinal = self._group_start
            self._skip_group()
        return None

    def close(self) -> None:
        self._batches = None
        self._file.close()
        self._source.close()

    def _open_file(self, metadata: pq.FileMetaData | None, dictionaries: list[str]) -> pq.ParquetFile:
        # INT96 counts nanoseconds, but of more years than nanoseconds in 64 bits reach
        return pq.ParquetFile(
            self._source,
            metadata=metadata,
            read_dictionary=dictionaries,
            pre_buffer=False,
            buffer_size=_BUFFER_BYTES if isinstance(self._task.filesystem, LocalFileSystem) else 0,
            coerce_int96_timestamp_unit="us",
        )

    def _rows_in(self, group: int) -> int:
        return self._file.metadata.row_group(group).num_rows

    def _skip_group(self) -> None:
        self._ordinal += self._rows_in(self._group)
        self._group += 1

    def _passes(self, group: int) -> bool:
        """Return whether some row of a row group may pass, by the values of the filter's columns alone."""
        probe, least = self._filter.probe, ROWS_AT_ONCE
        # A store far away would be asked twice for these columns. A small group is read at once.
        if not (
            probe.is_worth
            and isinstance(self._task.filesystem, LocalFileSystem)
            and len(probe.columns) < len(self._adapter.paths)
            and self._rows_in(group) > least
        ):
            return True
        passes = False
        try:
            for batch in self._file.iter_batches(
                least, row_groups=[group], columns=probe.columns, use_threads=False
            ):
                self._texts.validate(batch)
                passes = probe.passes(batch)
                if passes:
                    break
        # damaged: the read of all columns reports it
        except (OSError, pa.ArrowInvalid, pa.ArrowIndexError):
            return True
        probe.learn(skipped=not passes)
        return passes

    def _open_group(self) -> Iterator[pa.RecordBatch]:
        batches = self._file.iter_batches(
            # only the requested columns are decompressed
            self._rows_at_once(),
            row_groups=[self._group],
            columns=self._adapter.paths,
            use_threads=False,
        )
        while (batch := self._read(batches)) is not None:
            try:
                yield from self._texts.expanded(batch) if self._texts.names else (batch,)
            except pa.ArrowIndexError as error:
                raise unreadable(self._task.path, error) from error

    def _rows_at_once(self) -> int:
        """Return how many rows of a group to decode at once: each batch has costs of its own."""
        rows = _BYTES_AT_ONCE // self._row_bytes if self._row_bytes else 0
        return min(self._task.batch_rows, max(rows, _ROWS_AT_ONCE))

    def _read(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        try:
            batch = next(batches, None)
        except (OSError, pa.ArrowInvalid) as error:
            raise unreadable(self._task.path, error) from error
        try:
            if batch is not None:
                # a damaged file may decode into invalid arrays, which crash or mislead later kernels
                self._texts.validate(batch)
        except pa.ArrowInvalid as error:
            raise self._adapter.fault(batch) or unreadable(self._task.path, error) from error
        return batch

    def _decode(self, batch: pa.RecordBatch) -> Decoded:
        self._row_bytes = max(1, batch.nbytes // max(1, batch.num_rows))
        decoded = Decoded(self._adapter.adapt(batch), self._ordinal, batch.num_rows)
        # an anchor is the start of a row group: Arrow cannot begin inside one
        decoded.anchor.update(group=self._group, row=self._group_start)
        self._ordinal += batch.num_rows
        return decoded


class DictionaryTexts:
    """The text columns of a file whose values are stored as dictionaries, and how their batches become texts.

    A dictionary is checked once and not in each row: texts of few values take half the time. ``names``: the
    columns to read as dictionaries.
    """

    def __init__(self, file: pq.ParquetFile, paths: Sequence[str], groups: range) -> None:
        schema, metadata = file.schema_arrow, file.metadata
        leaves = {file.schema.column(index).path: index for index in range(len(file.schema))}
        self.names = [
            path
            for path in paths
            # a dot would read as a field of a ROW
            if "." not in path
            and (place := schema.get_field_index(path)) >= 0
            and schema.field(place).type == pa.string()
            and groups
            and all(_in_dictionary(metadata.row_group(group).column(leaves[path])) for group in groups)
        ]
        # of the last batch, by column: a valid dictionary and its longest value. A row group has one for all
        # its batches.
        self._valid: dict[str, tuple[pa.Array, int]] = {}

    def validate(self, batch: pa.RecordBatch) -> None:
        """Check a batch as it was read. Raise ArrowInvalid for an invalid array."""
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            # valid without a look at their values
            column.validate()
            if not isinstance(column, pa.DictionaryArray):
                if not is_ascii(column):
                    column.validate(full=True)
                continue
            # comparing 800 kB takes 25 us, checking them 1 ms
            if name not in self._valid or not column.dictionary.equals(self._valid[name][0]):
                column.dictionary.validate(full=True)
                longest = pc.max(pc.binary_length(column.dictionary)).as_py()
                self._valid[name] = column.dictionary, longest or 0

    def expanded(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield a valid batch with texts instead of indexes: in pieces where its texts are more than an array
        holds. Raise ArrowIndexError for an index beyond its dictionary, which is decoded without a look.
        """
        longest = max((self._valid[name][1] for name in self.names), default=0)
        at_once = _TEXT_BYTES // max(1, longest)
        if batch.num_rows <= at_once:
            yield self._as_texts(batch)
            return
        for begin in range(0, batch.num_rows, at_once):
            yield self._as_texts(batch.slice(begin, at_once))

    def _as_texts(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            column.dictionary.take(column.indices) if isinstance(column, pa.DictionaryArray) else column
            for column in batch.columns
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def is_ascii(column: pa.Array) -> bool:
    """Return whether a column of texts is valid because its letters are all ASCII, wherever its texts begin.
    Other columns are not looked at.
    """
    if not pa.types.is_string(column.type) or not len(column):
        return False
    _, offsets, letters = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    if letters is None or not (ends[1:] >= ends[:-1]).all():
        return False
    texts = np.frombuffer(letters, np.int8)[ends[0] : ends[-1]]
    # numpy compares 32 bytes at once: five times as quick as Arrow's look at each text
    return not len(texts) or bool(texts.min() >= 0)


def _in_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    """Return whether the values of a column chunk are a dictionary and indexes, or nearly all of them."""
    most = _DICTIONARY_BYTES + _INDEX_BYTES * chunk.num_values
    return bool(chunk.has_dictionary_page) and chunk.total_uncompressed_size <= most


def _fixed_width(paths: Sequence[str], schema: pa.Schema) -> int:
    """Return the bytes of a row of these columns, 0 when some column has no fixed width."""
    total = 0
    for path in paths:
        # a path of a nested column is no name of the schema
        index = schema.get_field_index(path)
        if index < 0 or not pa.types.is_primitive(schema.field(index).type):
            return 0
        total += -(-schema.field(index).type.bit_width // 8)
    return total


def row_group_ranges(task: FileTask, least_rows: int) -> list[tuple[int, int]]:
    """Return a file's row groups as consecutive ranges of at least so many rows each."""
    with task.open_seekable() as source:
        try:
            metadata = pq.read_metadata(source)
        except (OSError, pa.ArrowInvalid) as error:
            raise unreadable(task.path, error) from error
    ranges, begin, rows = [], 0, 0
    # gather groups until a range is worth a split; the last range may be smaller
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= least_rows or group + 1 == metadata.num_row_groups:
            ranges.append((begin, group + 1))
            begin, rows = group + 1, 0
    return ranges
