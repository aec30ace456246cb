"""OVER as SQL: window functions whose ties all columns break, as in the engine."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.types import INT, Timestamp, TimestampLtz
from penstock.planner.expressions.nodes import AggregateCall, Column, SortKey
from penstock.planner.logical.over import (
    PLACES,
    RANKS,
    Frame,
    FrameExclusion,
    FrameUnit,
    Over,
    PartitionTop,
    nth_of,
)
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.sql_generator.dialect import Flavour, cast, function, integer, text
from penstock.planner.sql_generator.expressions import aggregate_sql, expression_sql, sort_key_sql
from penstock.planner.sql_generator.windows import ROWS, aliased, column, named


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
    select = exp.select(*items).from_(writer.source(source))
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


_NUMBER, _GROUP = "row_in_order", "group_of_peers"
_REVERSED = {"PRECEDING": "FOLLOWING", "FOLLOWING": "PRECEDING"}


class _Calls:
    """Writes the calls of one node."""

    def __init__(self, plan: Over, flavour: Flavour) -> None:
        self.plan = plan
        self.flavour = flavour
        self.total = with_ties(plan.order, plan.input)
        # columns that the calls need beside those of the input, by name
        self._more: dict[str, exp.Expr] = {}
        self._check_exclusion()

    def _check_exclusion(self) -> None:
        """Raise BND-5101 for an EXCLUDE that the dialect has not. A frame of ROWS is in the order of all
        columns, in which no row has peers.
        """
        frame = self.plan.frame
        if frame.exclude is FrameExclusion.NO_OTHERS:
            return
        alone = frame.exclude is FrameExclusion.CURRENT_ROW
        if not self.flavour.full_frames or (frame.unit is FrameUnit.ROWS and not alone):
            raise self.flavour.refusal(f"EXCLUDE {frame.exclude.value.upper()}", self.plan.calls[0].span)

    def source(self, name: str) -> exp.Expr:
        """Return the input as FROM has it, with the columns that the calls need."""
        if not self._more:
            return aliased(name)
        more = [exp.alias_(value, column) for column, value in self._more.items()]
        return exp.select(exp.Star(), *more).from_(aliased(name)).subquery(ROWS)

    def _number(self) -> exp.Expr:
        """Return the column with the number of a row in the order of all columns."""
        self._more[_NUMBER] = self._over(function("row_number"), self.total)
        return named(_NUMBER)

    def write(self, call: AggregateCall) -> exp.Expr:
        """Return one call with its OVER."""
        # ROW_NUMBER needs a total order; RANK and DENSE_RANK number peers alike
        if call.function in RANKS:
            keys = self.total if call.function == "row_number" else self.plan.order
            return cast(self._over(function(call.function), keys), self.flavour.kind(INT))
        # LAG(x, n, default)
        if call.function in ("lag", "lead"):
            args = [expression_sql(arg, column, self.flavour) for arg in call.args]
            kind = exp.Lag if call.function == "lag" else exp.Lead
            spelled = kind(this=args[0], offset=_distance(call), default=args[2])
            return self._over(_without_nulls(spelled, call), self.total)
        if call.function in PLACES:
            return self._value_function(call)
        return aggregate_sql(call, column, self.flavour, self._framed)

    def _over(self, call: exp.Expr, order: Sequence[SortKey], spec: exp.Expr | None = None) -> exp.Expr:
        return _window(call, self.plan.partition, order, self.flavour, spec)

    def _framed(self, call: exp.Expr) -> exp.Expr:
        frame = self.plan.frame
        # a ROWS frame cuts between peers, so it needs the total order
        if frame.unit is FrameUnit.ROWS:
            return self._over(call, self.total, _spec(frame))
        # the whole partition: no order needed
        whole = frame.start is None and frame.end is None and frame.exclude is FrameExclusion.NO_OTHERS
        if not self.plan.order or whole:
            return self._over(
                call, (), _spec(frame) if frame.exclude is not FrameExclusion.NO_OTHERS else None
            )
        # GROUPS, where the dialect has none: RANGE over the number of the group
        if frame.unit is FrameUnit.GROUPS and not self.flavour.full_frames:
            self._more[_GROUP] = self._over(function("dense_rank"), self.plan.order)
            by = exp.Order(expressions=[exp.Ordered(this=named(_GROUP), nulls_first=True)])
            partition = [column(i) for i in self.plan.partition]
            spec = _spec(Frame(FrameUnit.RANGE, frame.start, frame.end))
            return exp.Window(this=call, partition_by=partition, order=by, spec=spec)
        # RANGE UNBOUNDED PRECEDING .. CURRENT ROW, GROUPS: peers see each other
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

    def _value_function(self, call: AggregateCall) -> exp.Expr:
        """FIRST_VALUE, LAST_VALUE and NTH_VALUE. A ROWS frame is in the order of all columns, another is in
        that of the clause and needs this order among its rows.
        """
        frame, value = self.plan.frame, expression_sql(call.args[0], column, self.flavour)
        if frame.unit is FrameUnit.ROWS:
            return self._over_rows(call, value)
        if self._ends_with_peers(call):
            return self._end_of_peers(call, value)
        if not self.flavour.full_frames:
            return self._by_row_number(call, value)
        # FIRST_VALUE(x ORDER BY all columns) OVER (ORDER BY k RANGE ..)
        backward = call.function == "nth_value" and nth_of(call) < 0
        keys = [
            SortKey(key.expression, not key.descending, not key.nulls_first) if backward else key
            for key in self.total
        ]
        order = [sort_key_sql(key, column, self.flavour) for key in keys]
        return self._framed(_without_nulls(_spelled(call, value, order), call))

    def _over_rows(self, call: AggregateCall, value: exp.Expr) -> exp.Expr:
        spec, spelled = _spec(self.plan.frame), _without_nulls(_spelled(call, value, []), call)
        if call.function != "nth_value" or nth_of(call) > 0:
            return self._over(spelled, self.total, spec)
        # FROM LAST: the same rows in the other direction
        keys = [SortKey(key.expression, not key.descending, not key.nulls_first) for key in self.total]
        start, end = spec.args["start"], spec.args["end"]
        sides = [_REVERSED.get(spec.args[side]) for side in ("end_side", "start_side")]
        spec.set("start", end)
        spec.set("start_side", sides[0])
        spec.set("end", start)
        spec.set("end_side", sides[1])
        return self._over(spelled, keys, spec)

    def _ends_with_peers(self, call: AggregateCall) -> bool:
        """Whether a call is of the first or last row of the partition or of the peers of its row."""
        frame = self.plan.frame
        plain = frame.unit is FrameUnit.RANGE and not frame.has_distance
        return (
            plain
            and frame.exclude is FrameExclusion.NO_OTHERS
            and call.filter is None
            and call.function != "nth_value"
        )

    def _end_of_peers(self, call: AggregateCall, value: exp.Expr) -> exp.Expr:
        """FIRST_VALUE or LAST_VALUE of a RANGE frame that extends over the peers of its bounds, as a ROWS
        frame within the peers.
        """
        spelled = function(call.function, value)
        side = self.plan.frame.start if call.function == "first_value" else self.plan.frame.end
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

    def _by_row_number(self, call: AggregateCall, value: exp.Expr) -> exp.Expr:
        """A place as an aggregate of the frame, by the numbers of its rows: Spark's arguments have no ORDER
        BY.
        """
        number = self._number()
        if call.filter is not None:
            keep = expression_sql(call.filter, column, self.flavour)
            number = exp.Case(ifs=[exp.If(this=keep, true=number)])
        if call.function != "nth_value":
            name = "min_by" if call.function == "first_value" else "max_by"
            return self._framed(function(name, value, number))
        if not is_orderable(call.type):
            raise self.flavour.refusal(f"nth_value of {call.type} of a frame that is no ROWS", call.span)
        nth = nth_of(call)
        # get(sort_array(collect_list(struct(number, x))), n - 1).x, of the rows with a number
        row = function("named_struct", text("n"), number, text("v"), value)
        known = exp.Not(this=exp.Is(this=number.copy(), expression=exp.null()))
        listed = self._framed(function("collect_list", exp.Case(ifs=[exp.If(this=known, true=row)])))
        ordered = function("sort_array", listed, exp.true() if nth > 0 else exp.false())
        one = function("get", ordered, integer(abs(nth) - 1))
        return exp.Dot(this=one, expression=exp.to_identifier("v"))


def _spelled(call: AggregateCall, value: exp.Expr, order: Sequence[exp.Expr]) -> exp.Expr:
    """Return FIRST_VALUE, LAST_VALUE or NTH_VALUE with an order among its arguments."""
    last = value if call.function != "nth_value" else integer(abs(nth_of(call)))
    if order:
        last = exp.Order(this=last, expressions=list(order))
    if call.function == "nth_value":
        return exp.NthValue(this=value, offset=last)
    return (exp.FirstValue if call.function == "first_value" else exp.LastValue)(this=last)


def _without_nulls(spelled: exp.Expr, call: AggregateCall) -> exp.Expr:
    # the FILTER of a place is IGNORE NULLS
    return spelled if call.filter is None else exp.IgnoreNulls(this=spelled)


def _distance(call: AggregateCall) -> exp.Expr:
    count = getattr(call.args[1], "value", 1)
    return integer(int(count))


def _spec(frame: Frame) -> exp.Expr:
    start, start_side = _bound(frame.start, "PRECEDING")
    end, end_side = _bound(frame.end, "FOLLOWING")
    spec = exp.WindowSpec(
        kind=frame.unit.value.upper(), start=start, start_side=start_side, end=end, end_side=end_side
    )
    if frame.exclude is not FrameExclusion.NO_OTHERS:
        spec.set("exclude", exp.var(frame.exclude.value.upper()))
    return spec


def _bound(distance: int | None, open_side: str) -> tuple[str | exp.Expr, str | None]:
    if distance is None:
        return "UNBOUNDED", open_side
    if distance == 0:
        return "CURRENT ROW", None
    return integer(abs(distance)), "PRECEDING" if distance < 0 else "FOLLOWING"


def _bigint() -> exp.DataType:
    return exp.DataType.build("BIGINT")
