"""What tests of operators by partition share: rows, a job of several subtasks that can be cut and
rescaled, and OVER computed naively.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING, TIMESTAMP
from penstock.engine.api.operator import Operator
from penstock.engine.api.stream_elements import Batch
from penstock.planner.expressions.nodes import AggregateCall, Column, SortKey
from penstock.planner.logical.over import Frame, FrameExclusion, FrameUnit
from tests.harness.layered import checkpoint
from tests.unit.engine.operators.changelogs import (
    Change,
    Collected,
    batch_of,
    context,
    owners,
    restored,
    snapshots,
)
from tests.unit.engine.operators.rank.test_top_n import place

SCHEMA = Schema((Field("k", BIGINT), Field("t", TIMESTAMP), Field("x", BIGINT), Field("s", STRING)))
START = datetime(2024, 1, 1)
ROW = st.tuples(
    st.sampled_from([None, 1, 2]),
    st.integers(0, 12).map(lambda s: START + timedelta(seconds=s)),
    st.sampled_from([None, 1, -2, 5]),
    st.sampled_from([None, "a", "b"]),
)
Rows = Counter[tuple[Any, ...]]


def column(index: int) -> Column:
    field = SCHEMA[index]
    return Column(field.type, True, index=index, name=field.name)


def micros(time: datetime) -> int:
    return (time - datetime(1970, 1, 1)) // timedelta(microseconds=1)


class Subtasks:
    """An operator in several subtasks, rows sent by the hash of their partition."""

    def __init__(self, make: Callable[[], Operator], partition: tuple[int, ...]) -> None:
        self.make = make
        self.partition = partition
        self.out = Collected()
        self.operators = [make()]
        self.operators[0].open(context())

    def feed(self, changes: list[Change], behind: int | None = None) -> None:
        batch = batch_of(changes, SCHEMA.to_arrow())
        if behind is not None:
            batch = Batch(batch.rows, batch.weights, np.full(batch.num_rows, behind))
        owner = owners(batch.rows, self.partition, len(self.operators))
        for subtask, operator in enumerate(self.operators):
            mine = np.flatnonzero(owner == subtask)
            if mine.size:
                operator.on_batch(batch.take(mine), 0, self.out)
        self._checkpoint()

    def _checkpoint(self) -> None:
        """What is restored later stands on layers of what was written at several times."""
        for operator in self.operators:
            checkpoint(operator)

    def watermark(self, time_us: int) -> None:
        for operator in self.operators:
            operator.on_watermark(time_us, self.out)
        self._checkpoint()

    def rescale(self, parallelism: int) -> None:
        saved = snapshots(self.operators)
        self.operators = [restored(self.make(), context(i, parallelism), saved) for i in range(parallelism)]

    def kept(self) -> int:
        return sum(
            state.snapshot().num_rows
            for operator in self.operators
            for state in operator.keyed_states().values()
        )


def sort_place(keys: tuple[SortKey, ...]) -> Callable[[tuple[Any, ...]], list[Any]]:
    def order(row: tuple[Any, ...]) -> list[Any]:
        parts = [_place(row[key.expression.index], key.descending, key.nulls_first) for key in keys]  # type: ignore[attr-defined]
        return parts + [_place(value, False, True) for value in row]

    return order


def _place(value: Any, descending: bool, nulls_first: bool) -> tuple[Any, ...]:
    return place(micros(value) if isinstance(value, datetime) else value, descending, nulls_first)


def parts_of(
    rows: Rows, partition: tuple[int, ...], keys: tuple[SortKey, ...]
) -> list[list[tuple[Any, ...]]]:
    """The partitions of a bag of rows, each in order."""
    parts: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for row, weight in rows.items():
        parts[tuple(row[i] for i in partition)] += [row] * weight
    return [sorted(part, key=sort_place(keys)) for part in parts.values()]


def over(
    rows: Rows,
    partition: tuple[int, ...],
    keys: tuple[SortKey, ...],
    frame: Frame,
    calls: tuple[AggregateCall, ...],
) -> Rows:
    """OVER, row by row and frame by frame."""
    found: Rows = Counter()
    for part in parts_of(rows, partition, keys):
        peers = [[row[key.expression.index] for key in keys] for row in part]  # type: ignore[attr-defined]
        for i, row in enumerate(part):
            framed = [j for j in range(len(part)) if _is_framed(i, j, part, peers, keys, frame)]
            framed = [j for j in framed if not _is_excluded(i, j, peers, frame.exclude)]
            found[row + tuple(_value(call, i, part, peers, framed) for call in calls)] += 1
    return found


def _is_framed(
    i: int, j: int, part: list[Any], peers: list[Any], keys: tuple[SortKey, ...], frame: Frame
) -> bool:
    if frame.unit is FrameUnit.ROWS:
        distance = j - i
    elif frame.unit is FrameUnit.GROUPS:
        number = [len({str(peer) for peer in peers[: n + 1]}) for n in range(len(peers))]
        distance = number[j] - number[i]
    elif frame.has_distance:
        key = keys[0]
        a, b = (micros(part[n][key.expression.index]) for n in (i, j))  # type: ignore[attr-defined]
        distance = a - b if key.descending else b - a
    else:
        distance = 0 if peers[i] == peers[j] else j - i
        return (frame.start is None or distance >= 0) and (frame.end is None or distance <= 0)
    return (frame.start is None or distance >= frame.start) and (frame.end is None or distance <= frame.end)


def _is_excluded(i: int, j: int, peers: list[Any], exclude: FrameExclusion) -> bool:
    match exclude:
        case FrameExclusion.NO_OTHERS:
            return False
        case FrameExclusion.CURRENT_ROW:
            return i == j
        case FrameExclusion.GROUP:
            return bool(peers[i] == peers[j])
    return i != j and bool(peers[i] == peers[j])


def _value(call: AggregateCall, i: int, part: list[Any], peers: list[Any], framed: list[int]) -> Any:
    index = call.args[0].index if call.args else 0  # type: ignore[attr-defined]
    values = [part[j][index] for j in framed]
    some = [value for value in values if value is not None]
    if call.filter is not None:
        values = some
    match call.function:
        case "row_number":
            return i + 1
        case "rank":
            return peers.index(peers[i]) + 1
        case "dense_rank":
            return len({str(peer) for peer in peers[: i + 1]})
        case "lag" | "lead" if call.filter is not None:
            n = call.args[1].value - 1  # type: ignore[attr-defined]
            near = part[i + 1 :] if call.function == "lead" else part[:i][::-1]
            near = [row[index] for row in near if row[index] is not None]
            return near[n] if n < len(near) else call.args[2].value  # type: ignore[attr-defined]
        case "nth_value":
            n = call.args[1].value  # type: ignore[attr-defined]
            values = values if n > 0 else values[::-1]
            return values[abs(n) - 1] if abs(n) <= len(values) else None
        case "lag" | "lead":
            j = i + (1 if call.function == "lead" else -1) * call.args[1].value  # type: ignore[attr-defined]
            return part[j][index] if 0 <= j < len(part) else call.args[2].value  # type: ignore[attr-defined]
        case "first_value":
            return values[0] if values else None
        case "last_value":
            return values[-1] if values else None
        case "count":
            return len(some) if call.args else len(values)
        case "sum":
            return sum(some) if some else None
        case "mode":
            return max(sorted(some), key=some.count) if some else None
        case "listagg":
            return "-".join(sorted(some)) if some else None
        case "percentile_approx":
            return sorted(some)[(len(some) + 1) // 2 - 1] if some else None
        case "max_by":
            by = [
                (part[j][call.args[1].index], part[j][index] is not None, part[j][index] or "")
                for j in framed
            ]  # type: ignore[attr-defined]
            best = max((row for row in by if row[0] is not None), default=(0, False, ""))
            return best[2] if best[1] else None
        case "avg":
            return sum(some) / len(some) if some else None
    return (min if call.function == "min" else max)(some) if some else None
