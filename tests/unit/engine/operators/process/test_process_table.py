"""Process table functions as operators: timers against a naive model, the clock, time to live, late timers,
and every mistake of a function by its code.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.process_table_functions import PythonProcessTable
from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, STRING, Timestamp
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.process import process_table
from penstock.engine.operators.process.process_table import LATE_TIMERS, ProcessTableOperator
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.physical.operator_specs import InputSchema, OperatorSpec
from tests.harness.operators import done
from tests.harness.state import OPTIONS, Folded, batch_of, opened, rescaled

INPUT = Schema((Field("k", STRING), Field("v", BIGINT), Field("ts", Timestamp(6), role=Role.EVENT_TIME)))
ARROW = INPUT.to_arrow()


def operator(function: PythonProcessTable, *, timed: bool = True, ttl_ms: int = 0) -> ProcessTableOperator:
    times = (2,) if timed else ()
    node = ProcessTable((InputSchema(INPUT),), function, (("k", "v", "ts"),), ((0,),), (), times)
    spec = OperatorSpec("id", "process", node.schema, node, PartitionFacts((True,), ttl_ms))
    return build_operator(spec, OPTIONS)  # type: ignore[return-value]


def rows(*values: tuple[Any, ...], **rest: Any) -> Any:
    return batch_of(ARROW, values, **rest)


@penstock.ptf({"name": "STRING"}, mode="row")
class Alarms:
    """Each row says what to do: its value is a time, or negative: forget. On a timer that ends with 7 another
    one follows.
    """

    set_so_far = penstock.value_state("BIGINT")

    def process(self, ctx: Any, row: dict[str, Any]) -> None:
        n = ctx.state.set_so_far = (ctx.state.set_so_far or 0) + 1
        if row["v"] < 0:
            ctx.clear_timer(f"n{-row['v']}")
        elif n % 3 == 0:
            ctx.set_timer(row["v"])
        else:
            ctx.set_timer(row["v"], f"n{row['v'] % 4}")
        if n % 11 == 0:
            ctx.clear_timers()

    def on_timer(self, ctx: Any) -> None:
        ctx.emit(f"{ctx.timer} {ctx.time_us}")
        if ctx.time_us % 10 == 7:
            ctx.set_timer(ctx.time_us + 4, "after")


class Model:
    """The same for one key at a time, with a sorted list."""

    def __init__(self) -> None:
        self.timers: dict[str, dict[tuple[str | None, int | None], int]] = defaultdict(dict)
        self.counts: dict[str, int] = defaultdict(int)
        self.emitted: list[tuple[str, str]] = []

    def row(self, key: str, value: int) -> None:
        timers = self.timers[key]
        self.counts[key] += 1
        if value < 0:
            timers.pop((f"n{-value}", None), None)
        elif self.counts[key] % 3 == 0:
            timers[None, value] = value
        else:
            timers[f"n{value % 4}", None] = value
        if self.counts[key] % 11 == 0:
            timers.clear()

    def reach(self, time: int) -> None:
        for key, timers in self.timers.items():
            while due := sorted((t, n[0] or "", n) for n, t in timers.items() if t <= time):
                at, _, name = due[0]
                del timers[name]
                self.emitted.append((key, f"{name[0]} {at}"))
                if at % 10 == 7:
                    timers["after", None] = at + 4


@pytest.mark.parametrize("seed", range(12))
def test_timers_are_those_of_a_naive_model(seed: int) -> None:
    dice, model, out = random.Random(seed), Model(), Folded()
    operators, reached = [opened(operator(Alarms))], 0
    for _ in range(12):
        given = [(dice.choice("ab"), dice.choice([-1, -2, *range(60)]), 0) for _ in range(dice.randint(1, 9))]
        for key, value, _ in given:
            model.row(key, value)
        for number, each in enumerate(operators):
            mine = [row for row in given if len(operators) == 1 or owner(row[0], len(operators)) == number]
            if mine:
                done(each.on_batch(rows(*mine), 0, out))
        reached += dice.choice((0, 3, 20))
        model.reach(reached)
        for each in operators:
            done(each.on_watermark(reached, out))
        if dice.random() < 0.3:
            operators = rescaled(operators, lambda: operator(Alarms), dice.randint(1, 3))
            for each in operators:
                each.on_restored()
    model.reach(MAX_WATERMARK_US)
    for each in operators:
        done(each.on_watermark(MAX_WATERMARK_US, out))
    emitted = [(r["k"], r["name"]) for batch in out.batches for r in batch.rows.to_pylist()]
    for key in "ab":
        assert [text for k, text in emitted if k == key] == [text for k, text in model.emitted if k == key]
    assert all(len(each._partitions.keys) == len(each._states["set_so_far"]) for each in operators)


def owner(key: str, parallelism: int) -> int:
    from penstock.engine.kernels.partition import partition
    from penstock.engine.kernels.stable_hash import stable_hash

    _, offsets = partition(stable_hash([pa.array([key])]), parallelism, 128)
    return int(np.flatnonzero(np.diff(offsets))[0])


@penstock.ptf({"n": "BIGINT"})
class Waiting:
    """Counts the rows of 50 ms of the clock."""

    n = penstock.value_state("BIGINT", ttl="1 s")

    def process(self, ctx: Any) -> None:
        counts = np.diff(ctx.offsets)
        ctx.state.n = pa.compute.add(pa.compute.fill_null(ctx.state.n, 0), counts)
        ctx.set_timer((ctx.now_ms + 50) * 1000, names="batch", processing_time=True)

    def on_timer(self, ctx: Any) -> None:
        assert ctx.processing_time
        some = np.flatnonzero(ctx.state.n.is_valid().to_numpy(zero_copy_only=False))
        ctx.emit([ctx.state.n.take(pa.array(some))], partitions=some)
        ctx.clear_timers()


def test_timers_of_the_clock_and_the_time_to_live_go_by_the_injected_clock() -> None:
    clock, out = ManualClock(1_000), Folded()
    made = opened(operator(Waiting, timed=False), clock=clock)
    done(made.on_batch(rows(("a", 1, 0), ("a", 1, 0), ("b", 1, 0)), 0, out))
    done(made.on_processing_time(1_049, out))
    assert not out.batches
    done(made.on_processing_time(1_050, out))
    assert out.rows == {("a", 2): 1, ("b", 1): 1}
    clock.advance(1_500)
    done(made.on_processing_time(clock.wall_ms(), out))
    assert made.metrics.counters["expired"] == 2
    assert len(made._partitions.keys) == 0, "nothing is left of keys without state"
    # what is still set at the end fires there
    done(made.on_batch(rows(("c", 1, 0)), 0, out))
    done(made.on_end(out))
    assert out.rows[("c", 1)] == 1


def test_what_is_late_is_marked_and_counted() -> None:
    made, out = opened(operator(Alarms)), Folded()
    done(made.on_watermark(100, out))
    done(made.on_batch(rows(("a", 50, 0), ("a", 120, 0)), 0, out))
    assert made.metrics.counters[LATE_TIMERS] == 1
    assert not out.batches, "it fires at the next watermark"
    done(made.on_watermark(130, out))
    first, second = out.batches
    assert first.rows.column(1).to_pylist() == ["n2 50"]
    # a window above closed at 100: the row is late there
    assert first.behind is not None
    assert first.behind.tolist() == [100]
    assert second.behind is None

    @penstock.ptf({"v": "BIGINT"})
    class Passed:
        def process(self, ctx: Any) -> None:
            ctx.emit([ctx.rows.column("v")], rows=np.arange(ctx.rows.num_rows))

    made = opened(operator(Passed))
    done(made.on_batch(rows(("a", 1, 5), ("b", 2, 5), ("a", 3, 9), behind=[7, -(2**63), -(2**63)]), 0, out))
    late = out.batches[-1]
    assert late.rows.column(1).to_pylist() == [1, 3, 2]
    assert late.behind is not None
    assert late.behind.tolist()[0] == 7


def test_a_chain_of_timers_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_table, "_ROUNDS_MAX", 20)

    @penstock.ptf({"n": "BIGINT"}, mode="row")
    class Ticking:
        def process(self, ctx: Any, row: dict[str, Any]) -> None:
            ctx.set_timer(row["v"])

        def on_timer(self, ctx: Any) -> None:
            if not (ctx.key["k"] == "stops" and ctx.ended):
                ctx.set_timer(ctx.time_us + (ctx.key["k"] != "stuck"))

    for key, reached, stops in (("a", 1_000, False), ("stuck", 5, True), ("stops", MAX_WATERMARK_US, False)):
        made, out = opened(operator(Ticking)), Folded()
        done(made.on_batch(rows((key, 1, 0)), 0, out))
        if stops:
            with pytest.raises(PenstockError, match="without end"):
                done(made.on_watermark(reached, out))
        else:
            done(made.on_watermark(reached, out))
    made = opened(operator(Ticking))
    done(made.on_batch(rows(("a", 1, 0)), 0, out))
    with pytest.raises(PenstockError, match="without end") as stopped:
        done(made.on_watermark(MAX_WATERMARK_US, out))
    assert stopped.value.code == "RUN-2013"
    assert "ctx.ended" in str(stopped.value.hint)


def _rows_of_nobody(ctx: Any) -> None:
    ctx.emit([1], rows=[99])


MISTAKES: dict[str, tuple[Callable[[Any], object], str]] = {
    "1 / 0": (lambda ctx: 1 // 0, "RUN-2010"),
    "a row that does not exist": (_rows_of_nobody, "RUN-2013"),
    "a row without a time": (lambda ctx: ctx.emit([1], partitions=[0]), "RUN-2013"),
    "another column": (lambda ctx: ctx.emit({"m": 1}, rows=[0]), "RUN-2011"),
    "too many columns": (lambda ctx: ctx.emit([1, 2], rows=[0]), "RUN-2011"),
    "another type": (lambda ctx: ctx.emit(["x"], rows=[0]), "RUN-2011"),
    "another length": (lambda ctx: ctx.emit([pa.array([1, 2])], rows=[0]), "RUN-2011"),
    "a retraction": (lambda ctx: ctx.emit([1], rows=[0], retract=True), "RUN-2013"),
    "an unknown state": (lambda ctx: ctx.state.nothing, "RUN-2013"),
    "a list that is assigned": (lambda ctx: setattr(ctx.state, "many", 1), "RUN-2013"),
    "a timer without on_timer": (lambda ctx: ctx.set_timer(1), "RUN-2013"),
    "a value of another type": (lambda ctx: setattr(ctx.state, "one", "x"), "RUN-2011"),
    "a partition that does not exist": (lambda ctx: ctx.state.many.append(1, [5]), "RUN-2013"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_of_a_function_have_codes(name: str) -> None:
    mistake, code = MISTAKES[name]

    @penstock.ptf({"n": "BIGINT"})
    class Mistaken:
        one = penstock.value_state("BIGINT")
        many = penstock.list_state("BIGINT")

        def process(self, ctx: Any) -> None:
            mistake(ctx)

    made = opened(operator(Mistaken))
    with pytest.raises(PenstockError) as failed:
        done(made.on_batch(rows(("a", 1, 0), ("b", 2, 0), ("a", 3, 0)), 0, Folded()))
    assert failed.value.code == code
    assert "Mistaken" in str(failed.value)
    assert "3 rows of input" in str(failed.value.detail), "how many rows it was called for"
    assert "Traceback" not in str(failed.value)


def test_a_row_of_weight_two_is_two_rows_and_a_large_retraction_comes_in_pieces() -> None:
    seen: list[tuple[int, int]] = []

    @penstock.ptf({"n": "BIGINT"})
    class Weighed:
        input = penstock.table_input(updates=True)

        def process(self, ctx: Any) -> None:
            seen.append((ctx.rows.num_rows, int(ctx.weights.sum())))

    made = opened(operator(Weighed))
    done(made.on_batch(rows(("a", 1, 0), ("b", 2, 0), weights=[2, -3]), 0, Folded()))
    assert seen == [(5, -1)]
    done(made.on_batch(rows(("a", 1, 0), weights=[-200_000]), 0, Folded()))
    assert sum(weight for _, weight in seen[1:]) == -200_000
    assert len(seen) > 2
