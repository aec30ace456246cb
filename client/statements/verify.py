"""VERIFY .. AGAINST BATCH compares a query on our own runtime, its changes folded, with the bounded
backend's answer.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.client.results.result import Result, note_result
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import group_numbers, summed
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.time_attributes import up_to
from penstock.planner.sql_generator.support import AUTO
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.planned_query import PlannedQuery
    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.engine.changelog.multiset_compare import ComparedRows

# what ON accepts
BACKENDS = ("spark", "duckdb")
# differences that an error shows; all of them are counted
SHOWN_ROWS = 20
# sums of DOUBLE in another order differ by about 1e-15 each: a million of them stay below this
TOLERANCE = 1e-9
_SHOWN_WIDTH = 160


@dataclass(frozen=True)
class Difference:
    """Rows that only one of two tables has. A positive count is the stream's, a negative one the batch's."""

    rows: pa.Table
    counts: np.ndarray

    def lines(self) -> list[str]:
        """Return the first rows as text, ``+`` for the stream's and ``-`` for the batch's."""
        shown = self.rows.slice(0, SHOWN_ROWS)
        lines = []
        for values, count in zip(
            zip(*(column.to_pylist() for column in shown.columns), strict=True),
            self.counts.tolist(),
            strict=False,
        ):
            text = ", ".join("NULL" if value is None else str(value) for value in values)
            times = f" ({abs(count)} times)" if abs(count) > 1 else ""
            lines.append(f"{'+' if count > 0 else '-'} ({text[:_SHOWN_WIDTH]}){times}")
        return lines


def verify(pipeline: QueryPipeline, node: nodes.Verify) -> Result:
    """Run a query both ways, over the rows up to a timestamp if it names one, and report that the rows are
    equal. VER-7002 with some of the differing rows, VER-7001 where there is no batch.
    """
    bound = pipeline.bind(node.query)
    # the bound plan, before it is planned twice: both sides read the same rows
    if node.up_to is not None:
        bound = up_to(bound, node.up_to.text, node.up_to.span)
    if node.backend is not None and node.backend.text not in BACKENDS:
        hint = did_you_mean(node.backend.text, BACKENDS, others=True)
        raise PenstockError(
            "BND-5000",
            f"there is no bounded backend '{node.backend.text}'",
            span=node.backend.span,
            hint=hint,
        )
    query = bound.inputs[0]
    # before anything is started: the streamed side would never end
    if not PlanFacts().finite(query):
        hint = "read files, a finite datagen or a table with 'source.replay' = 'true'"
        raise PenstockError(
            "VER-7001",
            "the query never ends, so there is no batch to compare it with",
            span=node.query.span,
            hint=hint,
        )
    batch = pipeline.plan(bound, mode="batch", backend=None if node.backend is None else node.backend.text)
    # a graph: the backend computes only parts, so our operators would be compared with themselves
    if batch.graph is not None:
        hint = "VERIFY compares queries over tables whose every part a backend has a word for"
        who = "no bounded backend" if batch.options.backend == AUTO else batch.options.backend
        can = "can" if batch.options.backend == AUTO else "cannot"
        message = f"{who} {can} compute this query by itself, so there is nothing to compare it with"
        raise PenstockError("VER-7001", message, span=node.query.span, hint=hint, sqlstate="0A000")
    # chosen once: a Spark that is up when the stream has ended would be another side than the one named
    batch = replace(batch, options=replace(batch.options, backend=pipeline.backend_name(batch)))
    with tempfile.TemporaryDirectory(prefix="penstock-verify-", ignore_cleanup_errors=True) as directory:
        return _compare(pipeline, node, pipeline.plan(bound, mode="streaming"), batch, Path(directory))


def _compare(
    pipeline: QueryPipeline, node: nodes.Verify, stream: PlannedQuery, batch: PlannedQuery, directory: Path
) -> Result:
    """Run both ways, one after the other, and compare part by part. Memory contains one part of the rows
    at a time.
    """
    # its kernels: not before something is compared
    from penstock.engine.changelog.multiset_compare import ComparedRows

    # the batch starts when the stream has ended: neither makes the other's time longer
    streamed = pipeline.start(stream)
    rows = ComparedRows(streamed.arrow_schema, directory)
    try:
        stream_s = _read_side(streamed, rows, 1)
        computed_s = _read_side(pipeline.start(batch), rows, -1)
        differences = DifferenceSoFar()
        for part, weights in rows.parts():
            # rows with equal exact columns are in one part, so each part is compared alone
            differences.add(_difference(part, weights))
    finally:
        rows.close()
    ours, theirs = rows.counts[1], rows.counts[-1]
    times = f"stream {stream_s:.2f} s, {batch.options.backend} {computed_s:.2f} s"
    if not differences.extra and not differences.missing:
        return note_result(f"equal: {ours:,} row{'' if ours == 1 else 's'}; {times}")
    extra = f"{differences.extra:,} row{'' if differences.extra == 1 else 's'} only of the stream (+)"
    raise PenstockError(
        "VER-7002",
        f"stream and batch differ: {extra}, {differences.missing:,} only of the batch (-)",
        detail="\n".join(differences.shown()),
        hint=f"{times}; rows: stream {ours:,}, batch {theirs:,}",
        span=node.query.span,
        sqlstate="P0004",
    )


def _read_side(result: Result, rows: ComparedRows, side: int) -> float:
    """Read all rows of a side; return the seconds it took."""
    while (batch := result.next()) is not None:
        rows.take(batch, side)
    return result.elapsed_s


class DifferenceSoFar:
    """The first differing rows as text, and how many there are of each side."""

    def __init__(self) -> None:
        self.extra = self.missing = 0
        self._rows = 0
        self._lines: list[str] = []

    def add(self, found: Difference) -> None:
        """Add the difference of one part."""
        self.extra += int(found.counts[found.counts > 0].sum())
        self.missing -= int(found.counts[found.counts < 0].sum())
        self._rows += found.rows.num_rows
        self._lines += found.lines()[: SHOWN_ROWS - len(self._lines)]

    def shown(self) -> list[str]:
        """Return the first rows, and how many more there are."""
        more = self._rows - SHOWN_ROWS
        return [*self._lines, *([f".. and {more:,} more"] if more > 0 else [])]


def difference(ours: pa.Table, theirs: pa.Table) -> Difference:
    """Return the difference of two multisets of rows. NULL equals NULL, NaN equals NaN; inexact numbers
    may differ by one in 1e9.
    """
    from penstock.engine.changelog.multiset_compare import ComparedRows

    rows = ComparedRows(ours.schema, Path(), buffered_rows=ours.num_rows + theirs.num_rows + 1)
    for side, table in ((1, ours), (-1, theirs)):
        for batch in table.to_batches():
            rows.take(Batch(batch), side)
    ((part, weights),) = rows.parts()
    return _difference(part, weights)


def _difference(rows: pa.Table, weights: np.ndarray) -> Difference:
    # +1 for each row of the stream, -1 for each of the batch: equal rows sum to zero and are gone
    rows, counts = summed(rows, weights)
    inexact = [i for i, field in enumerate(rows.schema) if pa.types.is_floating(field.type)]
    # only FLOAT and DOUBLE depend on the order of a sum; all other columns must be equal
    if inexact and rows.num_rows:
        keep = ~_nearly_equal(rows, counts, inexact)
        return Difference(rows.filter(array_of(keep)), counts[keep])
    return Difference(rows, counts)


def _nearly_equal(rows: pa.Table, counts: np.ndarray, inexact: list[int]) -> np.ndarray:
    """Return which rows equal a row of the other side but for rounding. Rows are sorted, so such rows have
    one rank.
    """
    # (rows,): equal numbers for rows that are equal in all columns but the inexact ones
    exact, _ = group_numbers(rows.select([i for i in range(rows.num_columns) if i not in inexact]))
    if len(inexact) == rows.num_columns:
        exact = np.zeros(rows.num_rows, np.int64)
    values = [rows.column(i).to_numpy() for i in inexact]
    rounded = [_rounded(column) for column in values]
    # by exact columns, then rounded ones, then the values: the n-th rows of both sides are candidates
    order = np.lexsort((*values[::-1], *rounded[::-1], exact))
    sides = [order[counts[order] > 0], order[counts[order] < 0]]
    found = np.zeros(rows.num_rows, np.bool_)
    ranks = [_ranks(exact[side]) for side in sides]
    # group and rank in one number; a rank is below num_rows, so no two pairs share one
    places = [exact[side] * rows.num_rows + rank for side, rank in zip(sides, ranks, strict=True)]
    _, first, second = np.intersect1d(places[0], places[1], assume_unique=True, return_indices=True)
    ours, theirs = sides[0][first], sides[1][second]
    # the row must be there as often on both sides
    equal = counts[ours] == -counts[theirs]
    for column in values:
        equal &= np.isclose(column[ours], column[theirs], rtol=TOLERANCE, atol=0, equal_nan=True)
    found[ours[equal]] = found[theirs[equal]] = True
    return found


def _rounded(values: np.ndarray) -> np.ndarray:
    """Return numbers cut to seven digits, so that what differs by rounding nearly always sorts alike."""
    with np.errstate(all="ignore"):
        scale = 10.0 ** (6 - np.floor(np.log10(np.abs(values))))
        cut = np.round(values * scale) / scale
    return np.where(np.isfinite(cut), cut, values)


def _ranks(groups: np.ndarray) -> np.ndarray:
    """Return the position of each element within its run of equal numbers."""
    starts = (
        np.flatnonzero(np.append(True, groups[1:] != groups[:-1])) if len(groups) else np.zeros(0, np.int64)
    )
    return np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
