"""Who runs what: the frontier between the bounded backend and our own runtime."""

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import View
from penstock.optimizer.bounded_subplans import choose_runtime
from penstock.optimizer.optimizer import optimize
from penstock.planner.explain.explain import explain
from penstock.planner.expressions.nodes import SortKey
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.logical.sink import Sink, StatementSet
from penstock.planner.logical.sort import Limit, Sort
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import TumbleWindow
from tests.unit.optimizer.executed import rows_of
from tests.unit.optimizer.plans import col, orders, scan, stream
from tests.unit.optimizer.sql import bind, catalog


def chosen(text: str, mode: str = "automatic") -> tuple[str, LogicalPlan]:
    return choose_runtime(optimize(bind(text)), mode)


def inputs(plan: LogicalPlan) -> list[BoundedInput]:
    return [node for node in plan.walk() if isinstance(node, BoundedInput)]


MIXED = "SELECT o.a, p.name FROM orders AS o JOIN people AS p ON o.k = p.k WHERE p.age > 30"
PUT = "INSERT INTO out SELECT k, name, age, id FROM people"


def test_bounded_tables_only_go_to_the_backend_whole() -> None:
    runtime, plan = chosen("SELECT k, COUNT(*) AS n FROM people GROUP BY k ORDER BY k")
    assert runtime == "batch"
    assert inputs(plan) == []


def test_literal_rows_need_no_backend() -> None:
    assert chosen("SELECT 1 AS one")[0] == "streaming"
    assert inputs(chosen("SELECT a FROM orders UNION ALL SELECT 1 AS a")[1]) == []


def test_a_mixed_plan_is_cut_at_the_largest_bounded_subplans() -> None:
    runtime, plan = chosen(MIXED)
    assert runtime == "streaming"
    (cut,) = inputs(plan)
    assert explain(cut) == (
        "BoundedInput [k, name]\n└── Project k, name\n    └── Scan people [k, name, age] where age > 30"
    )
    assert rows_of(plan) == rows_of(bind(MIXED))


def test_joins_of_bounded_tables_are_one_subplan() -> None:
    text = (
        "SELECT o.a, x.name FROM orders AS o JOIN (SELECT p.k, q.name FROM people AS p JOIN archive AS r ON p.k = r.k"
        " JOIN people AS q ON q.k = r.k) AS x ON o.k = x.k"
    )
    assert len(inputs(chosen(text)[1])) == 1


def test_streaming_mode_leaves_everything_to_our_runtime() -> None:
    runtime, plan = chosen(MIXED, "streaming")
    assert runtime == "streaming"
    assert inputs(plan) == []


def test_batch_mode_reads_recordings_as_tables_and_refuses_endless_ones() -> None:
    assert chosen(MIXED, "batch")[0] == "batch"
    with pytest.raises(PenstockError, match="table endless never ends") as caught:
        chosen("SELECT id FROM endless", "batch")
    assert caught.value.code == "SQL-1311"


class Ours(Limit):
    """Stands for a node no backend has a word for."""

    @property
    def only_ours(self) -> bool:
        return True


@pytest.mark.parametrize("mode", ["automatic", "batch"])
def test_what_no_backend_has_a_word_for_is_ours(mode: str) -> None:
    sink = optimize(bind("SELECT p.k, q.name FROM people AS p JOIN people AS q ON p.k = q.k"))
    assert isinstance(sink, Sink)
    runtime, plan = choose_runtime(Sink(Ours(sink.input, 3), None), mode)
    assert runtime == "streaming"
    assert (
        isinstance(plan, Sink) and isinstance(plan.input, Ours) and isinstance(plan.input.input, BoundedInput)
    )


def test_no_row_of_a_backend_is_late() -> None:
    timed = WindowTable(Ours(stream(orders()), 3), TumbleWindow(0, 1_000_000))
    plan = choose_runtime(Sink(timed, None), "batch")[1]
    (assign,) = [node for node in plan.walk() if isinstance(node, WatermarkAssign)]
    assert isinstance(assign.input, BoundedInput)
    assert str(assign.watermark) == "NULL"


def test_rows_for_a_table_are_written_by_our_runtime() -> None:
    runtime, plan = choose_runtime(optimize(bind(PUT)), "automatic")
    assert runtime == "streaming"
    assert isinstance(plan, Sink)
    assert isinstance(plan.input, BoundedInput)


def test_each_sink_of_a_statement_set_is_cut_by_itself() -> None:
    first, second = optimize(bind(PUT)), optimize(bind("INSERT INTO out SELECT k, 'n', a, b FROM orders"))
    assert isinstance(first, Sink) and isinstance(second, Sink)
    runtime, plan = choose_runtime(StatementSet((first, second)), "automatic")
    assert runtime == "streaming"
    assert isinstance(plan, StatementSet)
    assert [isinstance(sink.input, BoundedInput) for sink in plan.sinks] == [True, False]


def test_event_time_is_cut_below_its_watermark_where_windows_need_it() -> None:
    orders, archive = (optimize(bind(f"SELECT ts, k FROM {name}")) for name in ("orders", "archive"))
    text = "SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end"
    tables = catalog()
    tables.create_view(
        View("v", "SELECT ts, k FROM orders UNION ALL SELECT ts, k FROM archive", orders.schema)
    )
    plan = choose_runtime(optimize(bind(text, tables)), "automatic")[1]
    (cut,) = inputs(plan)
    above = next(node for node in plan.walk() if cut in node.inputs)
    assert isinstance(above, WatermarkAssign)
    assert archive.schema.same_layout(orders.schema)


def test_what_the_runtime_does_not_run_is_refused() -> None:
    """The binder refuses these with their place; a plan built otherwise is still refused before it starts."""
    endless_order = Sort(endless(), (SortKey(col(endless(), 0)),))
    for plan, code in (
        (Sink(endless_order, bind(PUT).table), "SQL-1314"),
        (Sink(Limit(Sort(stream(), (SortKey(col(stream(), 0)),)), 3), None), "SQL-1314"),
    ):
        with pytest.raises(PenstockError) as caught:
            choose_runtime(plan, "automatic")
        assert caught.value.code == code
    assert chosen("SELECT a FROM orders ORDER BY a")[0] == "streaming"


def endless() -> LogicalPlan:
    return scan(orders(source_monitor__interval="1 s"))
