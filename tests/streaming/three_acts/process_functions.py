"""Process table functions that tests call, and what the same is in SQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock


@penstock.ptf({"n": "BIGINT", "total": "BIGINT"}, emits_updates=True)
class Totals:
    """COUNT(*) and SUM(v) of each partition, over changes."""

    input = penstock.table_input(updates=True)
    row = penstock.value_state("ROW<n BIGINT, total BIGINT>")

    def process(self, ctx: Any) -> None:
        before = ctx.state.row
        known = before.is_valid()
        weighed = pc.multiply(pc.fill_null(ctx.rows.column("v"), 0), pa.array(ctx.weights))
        counts = np.add.reduceat(ctx.weights, ctx.offsets[:-1])
        sums = np.add.reduceat(np.asarray(weighed), ctx.offsets[:-1])
        n = pc.add(pc.fill_null(pc.struct_field(before, 0), 0), counts)
        total = pc.add(pc.fill_null(pc.struct_field(before, 1), 0), sums)
        left = pc.not_equal(n, 0)
        ctx.state.row = pa.StructArray.from_arrays([n, total], ["n", "total"], mask=pc.invert(left))
        self._emit(ctx, before, known, True)
        self._emit(ctx, pa.StructArray.from_arrays([n, total], ["n", "total"]), left, False)

    def _emit(self, ctx: Any, rows: pa.StructArray, chosen: pa.BooleanArray, retract: bool) -> None:
        at = np.flatnonzero(chosen.to_numpy(zero_copy_only=False))
        some = rows.take(pa.array(at))
        columns = {"n": pc.struct_field(some, 0), "total": pc.struct_field(some, 1)}
        ctx.emit(columns, partitions=at, retract=retract)


@penstock.ptf(
    {"started": "BIGINT", "events": "BIGINT"}, arguments={"gap": "INTERVAL DAY TO SECOND"}, mode="row"
)
class Sessions:
    """Sessions of each partition: events wait in a list until the watermark has passed their session."""

    input = penstock.table_input(requires_time=True)
    events = penstock.list_state("BIGINT")

    def process(self, ctx: Any, row: dict[str, Any]) -> None:
        ctx.state.events.append(ctx.time_us)
        ctx.set_timer(ctx.time + ctx.args["gap"])

    def on_timer(self, ctx: Any) -> None:
        gap_us, kept, session = ctx.args["gap"] // timedelta(microseconds=1), [], []
        for time_us in [*sorted(ctx.state.events), None]:
            if session and (time_us is None or time_us - session[-1] >= gap_us):
                # nothing comes any more that could belong to it
                if session[-1] + gap_us <= ctx.time_us:
                    ctx.emit(session[0], len(session))
                else:
                    kept += session
                session = []
            session.append(time_us)
        ctx.state.events = kept


@penstock.ptf({"other": "BIGINT", "mine": "BIGINT"})
class Pairs:
    """The inner join of two tables, each row with the rows of the other one before it."""

    sent = penstock.table_input()
    paid = penstock.table_input()
    lefts = penstock.list_state("BIGINT")
    rights = penstock.list_state("BIGINT")

    def process(self, ctx: Any) -> None:
        mine, others = (
            (ctx.state.lefts, ctx.state.rights)
            if ctx.input == "sent"
            else (ctx.state.rights, ctx.state.lefts)
        )
        values = ctx.rows.column("id")
        mine.append(values, ctx.partitions)
        stored = others.get().take(pa.array(ctx.partitions))
        parents = pc.list_parent_indices(stored)
        ids, found = values.take(parents), pc.list_flatten(stored)
        columns = [found, ids] if ctx.input == "sent" else [ids, found]
        ctx.emit(columns, partitions=ctx.partitions[np.asarray(parents)])


@penstock.ptf({"different": "BIGINT"}, emits_updates=True, mode="row")
class Variety:
    """COUNT(DISTINCT v) of each partition over changes, by a map from values to their counts."""

    input = penstock.table_input(updates=True)
    counts = penstock.map_state("BIGINT", "BIGINT")

    def process(self, ctx: Any, row: dict[str, Any]) -> None:
        counts, value = ctx.state.counts, row["v"]
        if value is None:
            return
        before = len(counts)
        left = counts.get(value, 0) + (-1 if ctx.retracts else 1)
        if left:
            counts[value] = left
        else:
            del counts[value]
        if len(counts) != before:
            if before:
                ctx.emit(before, retract=True)
            if counts:
                ctx.emit(len(counts))


@penstock.ptf({"high": "BOOLEAN"}, arguments={"threshold": "BIGINT"})
class Marked:
    """Each row with whether its value is above a threshold."""

    input = penstock.table_input(semantics="row", pass_columns_through=True)

    def process(self, ctx: Any) -> None:
        high = pc.greater(ctx.rows.column("v"), ctx.args["threshold"])
        ctx.emit([high], rows=np.arange(ctx.rows.num_rows))


@penstock.ptf({"n": "BIGINT"}, mode="row")
class Running:
    """The number of each row, of all rows where there is no PARTITION BY; a timer a second later has the
    greatest so far.
    """

    first = penstock.table_input(optional_partition_by=True)
    second = penstock.table_input(optional_partition_by=True)
    seen = penstock.value_state("BIGINT")

    def process(self, ctx: Any, row: dict[str, Any]) -> None:
        ctx.state.seen = (ctx.state.seen or 0) + 1
        ctx.set_timer(ctx.time + timedelta(seconds=1), "later")

    def on_timer(self, ctx: Any) -> None:
        if ctx.ended:
            ctx.emit(ctx.state.seen)


@penstock.ptf({"id": "BIGINT", "before": "BIGINT"}, arguments={"none": "BIGINT"}, defaults={"none": -1})
class Previous:
    """LAG(id) of each partition: right only where rows come in order."""

    last = penstock.value_state("BIGINT")

    def process(self, ctx: Any) -> None:
        ids = np.asarray(ctx.rows.column("id"))
        before = np.roll(ids, 1)
        before[ctx.offsets[:-1]] = np.asarray(pc.fill_null(ctx.state.last, ctx.args["none"]))
        ctx.emit([ids, before], rows=np.arange(ids.size))
        ctx.state.last = ids[ctx.offsets[1:] - 1]
