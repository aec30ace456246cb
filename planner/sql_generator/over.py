"""OVER as SQL: window functions whose ties all columns break, as in the engine."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.types import INT, Timestamp, TimestampLtz
from penstock.planner.expressions.nodes import AggregateCall, Column, SortKey
from penstock.planner.logical.over import RANKS, Frame, FrameUnit, Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.sql_generator.dialect import Flavour, cast, function, integer
from penstock.planner.sql_generator.expressions import aggregate_sql, expression_sql, sort_key_sql
from penstock.planner.sql_generator.windows import aliased, column


def with_ties(keys: Sequence[SortKey], plan: LogicalPlan) -> list[SortKey]:
    """Return an order extended by all orderable columns of a node, to break ties."""
    known = {key.expression.index for key in keys if isinstance(key.expression, Column)}
    fields = enumerate(plan.schema)
    return [
        *keys,
        *(
            SortKey(Column(f.type, f.nullable, index=i))
            for i, f in fields
            if i not in known and is_orderable(f.type)
        ),
    ]


def over_select(plan: Over, source: str, flavour: Flavour) -> exp.Select:
    """Return the select over a node's input with one window function per call. Rows without a time are
    dropped where the order is by event time.
    """
    width = len(plan.input.schema)
    items = [exp.alias_(column(i), f"c{i}") for i in range(width)]
    writer = _Calls(plan, flavour)
    items += [exp.alias_(writer.write(call), f"c{width + i}") for i, call in enumerate(plan.calls)]
    select = exp.select(*items).from_(aliased(source))
    if not plan.timely:
        return select
    return select.where(exp.Not(this=exp.Is(this=column(plan.time_column), expression=exp.null())))


def top_select(plan: PartitionTop, source: str, flavour: Flavour, name: str) -> exp.Select:
    """Return the select over a node's input with the rank as column ``name``; an outer select keeps the first
    rows.
    """
    # ROW_NUMBER breaks ties by all columns; RANK and DENSE_RANK need the ties.
    keys = with_ties(plan.order, plan.input) if plan.rank == "row_number" else list(plan.order)
    rank = _window(function(plan.rank), plan.partition, keys, flavour)
    items = [exp.alias_(column(i), f"c{i}") for i in range(len(plan.input.schema))]
    return exp.select(*items, exp.alias_(cast(rank, flavour.kind(INT)), name)).from_(aliased(source))


def _window(
    call: exp.Expr,
    partition: Sequence[int],
    order: Sequence[SortKey],
    flavour: Flavour,
    spec: exp.Expr | None = None,
) -> exp.Expr:
    items = [sort_key_sql(key, column, flavour) for key in order]
    ordered = exp.Order(expressions=items) if items else None
    return exp.Window(this=call, partition_by=[column(key) for key in partition], order=ordered, spec=spec)


class _Calls:
    """Writes the calls of one node."""

    def __init__(self, plan: Over, flavour: Flavour) -> None:
        self.plan = plan
        self.flavour = flavour
        self.total = with_ties(plan.order, plan.input)

    def write(self, call: AggregateCall) -> exp.Expr:
        """Return one call with its OVER."""
        # ROW_NUMBER needs a total order; RANK and DENSE_RANK number peers alike
        if call.function in RANKS:
            keys = self.total if call.function == "row_number" else self.plan.order
            return cast(self._over(function(call.function), keys), self.flavour.kind(INT))
        # LAG(x, n, default)
        if call.function in ("lag", "lead"):
            args = [expression_sql(arg, column, self.flavour) for arg in call.args]
            return self._over(function(call.function, args[0], _distance(call), args[2]), self.total)
        if call.function in ("first_value", "last_value"):
            return self._end_of_frame(call)
        return aggregate_sql(call, column, self.flavour, self._framed)

    def _over(self, call: exp.Expr, order: Sequence[SortKey], spec: exp.Expr | None = None) -> exp.Expr:
        return _window(call, self.plan.partition, order, self.flavour, spec)

    def _framed(self, call: exp.Expr) -> exp.Expr:
        frame = self.plan.frame
        # a ROWS frame cuts between peers, so it needs the total order
        if frame.unit is FrameUnit.ROWS:
            return self._over(call, self.total, _spec(frame))
        # the whole partition: no order needed
        if not self.plan.order or (frame.start is None and frame.end is None):
            return self._over(call, ())
        # RANGE UNBOUNDED PRECEDING .. CURRENT ROW: peers see each other
        if not frame.has_distance:
            return self._over(call, self.plan.order, _spec(frame))
        # RANGE with a distance: over the key as an integer
        key = self.plan.order[0]
        item = exp.Ordered(this=self._as_integer(key), desc=key.descending, nulls_first=key.nulls_first)
        partition = [column(i) for i in self.plan.partition]
        return exp.Window(
            this=call, partition_by=partition, order=exp.Order(expressions=[item]), spec=_spec(frame)
        )

    def _as_integer(self, key: SortKey) -> exp.Expr:
        """The order key as an integer, for distances: microseconds for a time."""
        value, kind = expression_sql(key.expression, column, self.flavour), key.expression.type
        if isinstance(kind, Timestamp | TimestampLtz):
            return self.flavour.epoch_us(value, kind)
        return cast(value, _bigint())

    def _end_of_frame(self, call: AggregateCall) -> exp.Expr:
        """FIRST_VALUE or LAST_VALUE. A RANGE frame extends over the peers of its bounds, so it is written as
        a ROWS frame within the peers.
        """
        frame, value = self.plan.frame, expression_sql(call.args[0], column, self.flavour)
        spelled = function(call.function, value)
        first = call.function == "first_value"
        side = frame.start if first else frame.end
        if frame.unit is FrameUnit.ROWS:
            return self._over(spelled, self.total, _spec(frame))
        whole = _spec(Frame(FrameUnit.ROWS, None, None))
        # an unbounded side: the end of the partition
        if side is None:
            return self._over(spelled, self.total, whole)
        # CURRENT ROW: the end of the peers, as a partition of their own
        peers = [column(key) for key in self.plan.partition]
        peers += [expression_sql(key.expression, column, self.flavour) for key in self.plan.order]
        ties = [sort_key_sql(key, column, self.flavour) for key in self.total[len(self.plan.order) :]]
        return exp.Window(
            this=spelled, partition_by=peers, order=exp.Order(expressions=ties) if ties else None, spec=whole
        )


def _distance(call: AggregateCall) -> exp.Expr:
    count = getattr(call.args[1], "value", 1)
    return integer(int(count))


def _spec(frame: Frame) -> exp.Expr:
    start, start_side = _bound(frame.start, "PRECEDING")
    end, end_side = _bound(frame.end, "FOLLOWING")
    return exp.WindowSpec(
        kind=frame.unit.value.upper(), start=start, start_side=start_side, end=end, end_side=end_side
    )


def _bound(distance: int | None, open_side: str) -> tuple[str | exp.Expr, str | None]:
    if distance is None:
        return "UNBOUNDED", open_side
    if distance == 0:
        return "CURRENT ROW", None
    return integer(abs(distance)), "PRECEDING" if distance < 0 else "FOLLOWING"


def _bigint() -> exp.DataType:
    return exp.DataType.build("BIGINT")
