"""Random plans with OVER and Top-N per partition anywhere among the other nodes."""

from __future__ import annotations

from penstock.catalog.schema import Role
from penstock.catalog.types import BIGINT, DOUBLE, INT, TIMESTAMP
from penstock.planner.expressions.nodes import AggregateCall, Expression, Literal, SortKey
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.over import Frame, FrameUnit, Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import AttachedWindow
from tests.unit.optimizer.plans import call, col
from tests.unit.optimizer.random_plans import RandomPlans

RANKS = ("row_number", "rank", "dense_rank")


class RandomOver(RandomPlans):
    """Wraps what any depth makes, now and then."""

    def plan(self, depth: int = 3) -> LogicalPlan:
        made = super().plan(depth)
        kind = self.dice.random()
        return self._over(made) if kind < 0.3 else self._top(made) if kind < 0.45 else made

    def _partition(self, below: LogicalPlan) -> tuple[tuple[int, ...], AttachedWindow | None]:
        keys = self.dice.sample(range(len(below.schema)), min(len(below.schema), self.dice.randint(0, 2)))
        bounds = [i for i, f in enumerate(below.schema) if f.role in (Role.WINDOW_START, Role.WINDOW_END)]
        if (
            len(bounds) != 2
            or not isinstance(below, WindowAggregate | WindowTable)
            or self.dice.random() < 0.3
        ):
            return tuple(keys), None
        return tuple(dict.fromkeys([*keys, *bounds])), AttachedWindow(
            *sorted(bounds, key=lambda i: below.schema[i].role is Role.WINDOW_END)
        )

    def _order(self, below: LogicalPlan) -> tuple[SortKey, ...]:
        keys = [
            self.expression(below, 1) if self.dice.random() < 0.2 else col(below, self._any(below))
            for _ in range(self.dice.randint(1, 2))
        ]
        return tuple(SortKey(key, self.dice.random() < 0.4, self.dice.random() < 0.5) for key in keys)

    def _any(self, below: LogicalPlan) -> int:
        return self.dice.randrange(len(below.schema))

    def _top(self, below: LogicalPlan) -> LogicalPlan:
        """Half of them as the rule finds them, half as it leaves them."""
        partition, window = self._partition(below)
        rank, limit = self.dice.choice(RANKS), self.dice.randint(1, 3)
        if self.dice.random() < 0.5:
            return PartitionTop(
                below, partition, self._order(below), rank, limit, self.dice.choice([None, "r"]), window
            )
        over = Over(
            below,
            partition,
            self._order(below),
            Frame(),
            (AggregateCall(rank, (), INT, False),),
            ("r",),
            False,
            window,
        )
        bound = Literal(INT, False, value=limit)
        return Filter(over, self._compared(over, bound))

    def _compared(self, over: Over, bound: Literal) -> Expression:
        rank = col(over, len(over.schema) - 1)
        return call(self.dice.choice(["less_equal", "equal", "less"]), rank, bound)

    def _over(self, below: LogicalPlan) -> LogicalPlan:
        partition, window = self._partition(below)
        order, timely = self._order(below), False
        if _is_timely_stream(below) and self.dice.random() < 0.7:
            times = [i for i, f in enumerate(below.schema) if f.is_event_time]
            order, timely = (SortKey(col(below, times[0])), *order[: self.dice.randint(0, 1)]), True
        frame = self._frame(order, timely)
        calls = tuple(
            one
            for one in (self._window_call(below, timely) for _ in range(self.dice.randint(1, 3)))
            if _goes_with(one, frame)
        )
        calls = calls or (AggregateCall("count", (), BIGINT, False),)
        return Over(
            below, partition, order, frame, calls, tuple(f"o{i}" for i in range(len(calls))), timely, window
        )

    def _frame(self, order: tuple[SortKey, ...], timely: bool) -> Frame:
        start = self.dice.choice([None, None, -3, -1, 0])
        end = self.dice.choice([0, 0, -1] if timely else [0, None, 1, 2])
        kind = order[0].expression.type
        unit = self.dice.choice(list(FrameUnit))
        if unit is FrameUnit.RANGE and (len(order) > 1 or kind not in (INT, BIGINT, TIMESTAMP)):
            return Frame(unit, self.dice.choice([None, 0]), 0 if timely else self.dice.choice([0, None]))
        start = end if start is not None and end is not None and start > end else start
        size = 10_000_000 if unit is FrameUnit.RANGE and kind == TIMESTAMP else 1
        return Frame(unit, None if start is None else start * size, None if end is None else end * size)

    def _window_call(self, below: LogicalPlan, timely: bool) -> AggregateCall:
        kind = self.dice.randrange(4)
        if kind == 0:
            return AggregateCall(self.dice.choice(RANKS), (), INT, False)
        value = col(below, self._any(below))
        if kind == 1:
            name = "lag" if timely else self.dice.choice(["lag", "lead"])
            rows = Literal(BIGINT, False, value=self.dice.randint(0, 3))
            return AggregateCall(name, (value, rows, Literal(value.type, True, value=None)), value.type)
        if kind == 2:
            return AggregateCall(
                self.dice.choice(["first_value", "last_value", "min", "max"]), (value,), value.type
            )
        numbers = [i for i, f in enumerate(below.schema) if f.type == INT]
        if not numbers:
            return AggregateCall("count", (value,), BIGINT, False)
        name = self.dice.choice(["sum", "avg", "count"])
        return AggregateCall(
            name,
            (col(below, self.dice.choice(numbers)),),
            DOUBLE if name == "avg" else BIGINT,
            name != "count",
        )


def _is_timely_stream(plan: LogicalPlan) -> bool:
    """Whether a plan's event time has gone through nothing that holds rows back."""
    while isinstance(plan, Filter) or (isinstance(plan, Over) and plan.timely):
        plan = plan.input
    return isinstance(plan, WatermarkAssign)


def _goes_with(call: AggregateCall, frame: Frame) -> bool:
    """What the binder lets through."""
    if frame.has_distance and call.function in ("first_value", "last_value"):
        return False
    return call.function not in ("min", "max") or str(call.type) != "BOOLEAN"
