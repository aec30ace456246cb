"""Random plans from a seed: every node kind in every place, over small tables."""

from __future__ import annotations

import random

from penstock.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from penstock.planner.expressions.nodes import (
    FALSE,
    TRUE,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    SortKey,
)
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sort import Sort
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import AttachedWindow, CumulateWindow, HopWindow, TumbleWindow
from tests.unit.optimizer.executed import orders_table, people_table
from tests.unit.optimizer.plans import call, col

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


class RandomPlans:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def plan(self, depth: int = 4) -> LogicalPlan:
        if depth == 0:
            return self._leaf()
        make = self.dice.choice(
            [self._filter] * 4
            + [self._project] * 3
            + [self._join] * 3
            + [self._aggregate] * 2
            + [self._union, self._windows, self._sort]
        )
        return make(depth)

    def _leaf(self) -> LogicalPlan:
        kind = self.dice.randrange(8)
        if kind == 0:
            cells = [
                (Literal(STRING, False, value=k), Literal(INT, v is None, value=v))
                for k, v in (("x", 1), ("y", None), ("x", 5))
            ]
            return Values(tuple(cells), people_table().schema.select((0, 2)))
        if kind < 5:
            return self._stream()
        table = people_table()
        return Scan(table, tuple(range(len(table.schema))))

    def _stream(self) -> LogicalPlan:
        table = orders_table()
        scan = Scan(table, tuple(range(len(table.schema))))
        return WatermarkAssign(scan, 0, col(scan, 0))

    def _filter(self, depth: int) -> LogicalPlan:
        below = self.plan(depth - 1)
        return Filter(below, self.predicate(below))

    def _project(self, depth: int) -> LogicalPlan:
        below = self.plan(depth - 1)
        expressions = [self.expression(below, 2) for _ in range(self.dice.randint(1, 4))]
        return Project(below, tuple(expressions), tuple(f"p{i}" for i in range(len(expressions))))

    def _join(self, depth: int) -> LogicalPlan:
        left, right = self.plan(depth - 1), self.plan(self.dice.randrange(depth))
        pairs = [
            (i, j)
            for i, a in enumerate(left.schema)
            for j, b in enumerate(right.schema)
            if a.type == b.type and a.type != BOOLEAN
        ]
        keys = self.dice.sample(pairs, min(len(pairs), self.dice.randint(0, 2)))
        kind = self.dice.choice(list(JoinKind)) if keys else JoinKind.INNER
        both = Join(left, right, JoinKind.INNER, (), ())
        residual = self.predicate(both) if self.dice.random() < 0.6 or not keys else None
        return Join(left, right, kind, tuple(a for a, _ in keys), tuple(b for _, b in keys), residual)

    def _aggregate(self, depth: int) -> LogicalPlan:
        below = self.plan(depth - 1)
        keys = tuple(
            self.dice.sample(range(len(below.schema)), min(len(below.schema), self.dice.randint(0, 2)))
        )
        calls = self._calls(below, 0 if keys else 1)
        return Aggregate(below, keys, calls, tuple(f"g{i}" for i in range(len(calls))))

    def _calls(self, below: LogicalPlan, least: int) -> tuple[AggregateCall, ...]:
        return tuple(self._call(below) for _ in range(self.dice.randint(least, 3)))

    def _call(self, below: LogicalPlan) -> AggregateCall:
        keep = self.predicate(below) if self.dice.random() < 0.3 else None
        numbers = [i for i, f in enumerate(below.schema) if f.type == INT]
        if not numbers or self.dice.random() < 0.3:
            return AggregateCall("count", (), BIGINT, False, filter=keep)
        arg = col(below, self.dice.choice(numbers))
        function = self.dice.choice(["count", "sum", "min", "max", "avg"])
        kinds = {"count": BIGINT, "sum": BIGINT, "avg": DOUBLE}
        distinct = function == "count" and self.dice.random() < 0.3
        return AggregateCall(function, (arg,), kinds.get(function, INT), function != "count", distinct, keep)

    def _union(self, depth: int) -> LogicalPlan:
        first = self.plan(depth - 1)
        again = Filter(first, self.predicate(first)) if self.dice.random() < 0.5 else first
        return Union((first, again))

    def _windows(self, depth: int) -> LogicalPlan:
        below: LogicalPlan = self._stream()
        if self.dice.random() < 0.5:
            below = Filter(below, self.predicate(below))
        kind = self.dice.choice([TumbleWindow, HopWindow, CumulateWindow])
        step = 0 if kind is TumbleWindow else 30_000_000
        node: LogicalPlan = WindowTable(below, kind(0, 60_000_000, step))
        start, end = len(node.schema) - 3, len(node.schema) - 2
        if self.dice.random() < 0.6:
            node = Filter(node, self.predicate(node))
        if self.dice.random() < 0.5:
            order = self.dice.sample(range(len(node.schema) - 3), 3)
            columns = (
                col(node, end),
                *(col(node, i) for i in order),
                col(node, start),
                self.expression(node, 1),
            )
            node, start, end = Project(node, columns, ("e", "o1", "o2", "o3", "s", "x")), 4, 0
        keys = tuple(self.dice.sample(range(1, 4), self.dice.randint(0, 2)))
        calls = self._calls(node, 1)
        return WindowAggregate(
            node, AttachedWindow(start, end), keys, calls, tuple(f"w{i}" for i in range(len(calls)))
        )

    def _sort(self, depth: int) -> LogicalPlan:
        below = self.plan(depth - 1)
        return Sort(below, (SortKey(col(below, 0)),))

    def predicate(self, below: LogicalPlan, depth: int = 2) -> Expression:
        kind = self.dice.randrange(20)
        if kind == 0:
            return self.dice.choice([TRUE, FALSE, TRUE, TRUE])
        if kind <= 6 and depth:
            left, right = self.predicate(below, depth - 1), self.predicate(below, depth - 1)
            return Call(
                BOOLEAN,
                left.nullable or right.nullable,
                function=self.dice.choice(["and", "or", "or"]),
                args=(left, right),
            )
        if kind == 7 and depth:
            return call("not", self.predicate(below, depth - 1))
        column = col(below, self.dice.randrange(len(below.schema)))
        if kind in (8, 9) or column.type == BOOLEAN:
            return Call(BOOLEAN, False, function=self.dice.choice(["is_null", "is_not_null"]), args=(column,))
        return call(self.dice.choice(_COMPARISONS), column, self._like(below, column))

    def _like(self, below: LogicalPlan, column: Column) -> Expression:
        """Something to compare a column with: another column of its type, itself, or a constant
        expression.
        """
        same = [i for i, f in enumerate(below.schema) if f.type == column.type]
        if column.type == INT and self.dice.random() < 0.5:
            one, two = (
                Literal(INT, False, value=self.dice.randrange(4)),
                Literal(INT, False, value=self.dice.randrange(4)),
            )
            return call("add", one, two, kind=INT)
        if column.type == STRING and self.dice.random() < 0.5:
            return Literal(STRING, False, value=self.dice.choice(["x", "y", "z"]))
        return col(below, self.dice.choice(same))

    def expression(self, below: LogicalPlan, depth: int) -> Expression:
        column = col(below, self.dice.randrange(len(below.schema)))
        kind = self.dice.randrange(6)
        if kind <= 2 or depth == 0:
            return column
        if kind == 3:
            return self.predicate(below, 1)
        if column.type == INT:
            return call(
                "add",
                Cast(BIGINT, column.nullable, arg=column),
                Literal(BIGINT, False, value=self.dice.randrange(5)),
                kind=BIGINT,
            )
        test = self.predicate(below, 1)
        return Case(
            column.type, True, whens=((test, column),), default=Literal(column.type, True, value=None)
        )
