"""Bounded plans over the flights of 2013 that every backend must answer alike."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal as PyDecimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
)
from penstock.engine.bounded.backend import BoundedBackend
from penstock.planner.expressions.nodes import (
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
from penstock.planner.logical.over import Frame, FrameUnit, Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Limit, Sort, TopN
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import (
    AttachedWindow,
    CumulateWindow,
    HopWindow,
    SessionWindow,
    TumbleWindow,
    Windowing,
)

DATA = Path(__file__).parents[4] / "queries" / "data"
DAY_US = 86_400 * 10**6
HOUR_US = 3_600 * 10**6


def files(name: str, path: str | Path, columns: list[tuple[str, DataType]], **options: str) -> CatalogTable:
    schema = Schema(tuple(Field(column, kind) for column, kind in columns))
    return CatalogTable(name, schema, schema, {"connector": "filesystem", "path": str(path), **options})


def col(plan: LogicalPlan, at: int | str) -> Column:
    index = at if isinstance(at, int) else plan.schema.index_of(at)
    assert index is not None
    return Column(plan.schema[index].type, plan.schema[index].nullable, index=index)


def call(function: str, kind: DataType, *args: Expression) -> Call:
    return Call(kind, True, function=function, args=args)


def lit(value: Any, kind: DataType) -> Literal:
    return Literal(kind, value is None, value=value)


def agg(function: str, kind: DataType, *args: Expression, **more: Any) -> AggregateCall:
    return AggregateCall(function, args, kind, **more)


_TEXTS = {"carrier", "tailnum", "origin", "dest", "time_hour"}
_NAMES = (
    "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay carrier flight tailnum origin dest air_time distance hour"
    " minute time_hour"
)
CSV = {"format": "csv", "csv.null-literal": "NA"}


def flights() -> Scan:
    columns = [(name, STRING if name in _TEXTS else INT) for name in _NAMES.split()]
    return Scan(
        files("flights", DATA / "flights" / "2013-01.csv.gz", columns, **CSV), tuple(range(len(columns)))
    )


def airlines() -> Scan:
    return Scan(
        files("airlines", DATA / "airlines.csv.gz", [("carrier", STRING), ("name", STRING)], **CSV), (0, 1)
    )


def departures() -> LogicalPlan:
    """departed (event time), origin, carrier, dep_time, dep_delay, arr_delay."""
    scan = flights()
    actual, scheduled = col(scan, "dep_time"), col(scan, "sched_dep_time")
    planned = Case(INT, True, whens=((call("is_not_null", BOOLEAN, actual), actual),), default=scheduled)
    hours = call(
        "multiply",
        BIGINT,
        call("div", BIGINT, Cast(BIGINT, True, arg=planned), lit(100, BIGINT)),
        lit(60, BIGINT),
    )
    minutes = call("add", BIGINT, hours, Cast(BIGINT, True, arg=call("mod", INT, planned, lit(100, INT))))
    day = call("make_date", DATE, *(col(scan, name) for name in ("year", "month", "day")))
    departed = call("timestampadd", TIMESTAMP, lit("MINUTE", STRING), minutes, Cast(TIMESTAMP, True, arg=day))
    names = ("origin", "carrier", "dep_time", "dep_delay", "arr_delay")
    project = Project(scan, (departed, *(col(scan, name) for name in names)), ("departed", *names))
    return WatermarkAssign(project, 0, col(project, 0))


def windowed(kind: type[Windowing], **sizes: Any) -> WindowAggregate:
    rows = departures()
    cancelled = call("is_null", BOOLEAN, col(rows, "dep_time"))
    aggregates = (
        agg("count", BIGINT, nullable=False),
        agg("count", BIGINT, filter=cancelled),
        agg("sum", BIGINT, col(rows, "dep_delay")),
        agg("avg", DOUBLE, col(rows, "arr_delay")),
        agg("max", INT, col(rows, "arr_delay")),
        agg("count", BIGINT, col(rows, "dep_time"), distinct=True),
    )
    return WindowAggregate(
        rows,
        kind(0, **sizes),
        (1, 2),
        aggregates,
        ("n", "cancelled", "delay", "mean", "worst", "times"),
    )


def _percent(rows: WindowAggregate) -> LogicalPlan:
    """100.0 * cancelled / n as decimals, rounded, the largest first."""
    wide = Decimal(20, 0)
    product = call(
        "multiply", Decimal(25, 1), lit(PyDecimal("100.0"), Decimal(4, 1)), Cast(wide, True, arg=col(rows, 3))
    )
    share = call(
        "round",
        Decimal(26, 1),
        call("divide", Decimal(38, 14), product, Cast(wide, True, arg=col(rows, 2))),
        lit(1, INT),
    )
    project = Project(rows, (col(rows, 0), col(rows, 1), share), ("origin", "carrier", "percent"))
    return TopN(project, (SortKey(Column(Decimal(26, 1), True, index=2), True, False),), 12)


def _sorted_join(rows: WindowAggregate) -> LogicalPlan:
    join = Join(rows, airlines(), JoinKind.INNER, (1,), (0,))
    project = Project(
        join,
        tuple(col(join, i) for i in (0, 12, 2, 3, 4, 5, 8)),
        ("origin", "name", "n", "c", "d", "mean", "start"),
    )
    keys = (SortKey(col(project, 6)), SortKey(col(project, 1), True, False), SortKey(col(project, 0)))
    return Sink(Sort(project, keys), None)


def _attached(rows: LogicalPlan) -> LogicalPlan:
    table = WindowTable(rows, HopWindow(0, 4 * HOUR_US, 2 * HOUR_US))
    return WindowAggregate(
        table,
        AttachedWindow(6, 7),
        (1,),
        (agg("count", BIGINT), agg("min", TIMESTAMP, col(table, 8))),
        ("n", "first"),
    )


AWKWARD = ((lit("a\\'b", STRING), lit(1, INT)), (lit('x\ny\t"`', STRING), lit(None, INT)))


def _over(rows: LogicalPlan) -> LogicalPlan:
    """Calls of every kind over the longest delays of each carrier, rows without a time left out."""
    late = Filter(rows, call("greater", BOOLEAN, col(rows, "dep_delay"), lit(240, INT)))
    delay, order = col(late, "dep_delay"), (SortKey(col(late, 0)),)
    rest = (lit(2, BIGINT), lit(-1, INT))
    calls = (
        agg("rank", INT),
        agg("lag", INT, delay, *rest),
        agg("last_value", INT, delay),
        agg("sum", BIGINT, delay),
        agg("avg", DOUBLE, delay),
    )
    names = tuple(f"o{i}" for i in range(len(calls)))
    rows = Over(late, (2,), order, Frame(FrameUnit.ROWS, -3, 0), calls, names, True)
    total = (agg("max", INT, delay), agg("count", BIGINT), agg("row_number", INT))
    return Over(rows, (1,), order, Frame(FrameUnit.RANGE, -2 * DAY_US, HOUR_US), total, ("m", "n", "r"))


def _partition_top(rows: LogicalPlan) -> LogicalPlan:
    order = (SortKey(col(rows, "dep_delay"), True, False), SortKey(col(rows, 0)))
    return PartitionTop(rows, (2,), order, "row_number", 3, "place")


def plans() -> dict[str, LogicalPlan]:
    """All shapes by name."""
    tumble, names, scan = windowed(TumbleWindow, size_us=7 * DAY_US), airlines(), flights()
    shapes: dict[str, LogicalPlan] = {
        "tumble": tumble,
        "hop": windowed(HopWindow, size_us=2 * DAY_US, step_us=DAY_US, offset_us=HOUR_US),
        "cumulate": windowed(CumulateWindow, size_us=2 * DAY_US, step_us=DAY_US // 2),
        "session": windowed(SessionWindow, size_us=DAY_US // 4, partition_keys=(1, 2)),
        "attached": _attached(departures()),
        "sorted join": _sorted_join(tumble),
        "percent": _percent(tumble),
        "no columns": Aggregate(Project(scan, (), ()), (), (agg("count", BIGINT),), ("n",)),
        "distinct": Aggregate(Union((names, names)), (0,), (), ()),
        "twice": Join(names, names, JoinKind.INNER, (0,), (0,)),
        "cross": Aggregate(Join(names, names, JoinKind.INNER, (), ()), (), (agg("count", BIGINT),), ("n",)),
        "values": Values(AWKWARD, Schema((Field("s", STRING), Field("i", INT)))),
        "no rows": Values((), Schema((Field("s", STRING),))),
        "over": _over(departures()),
        "partition top": _partition_top(departures()),
        "limit": Aggregate(Limit(names, 5, 2), (), (agg("count", BIGINT),), ("n",)),
    }
    few = Filter(tumble, call("less", BOOLEAN, col(tumble, 2), lit(60, BIGINT)))
    some = Filter(names, call("greater", BOOLEAN, col(names, 0), lit("B", STRING)))
    for kind in JoinKind:
        residual = call("like", BOOLEAN, Column(STRING, True, index=12), lit("%Inc%", STRING))
        shapes[f"{kind} join"] = Join(few, some, kind, (1,), (0,), residual)
    return shapes


ORDERED = ("sorted join", "percent")


def answer(backend: BoundedBackend, plan: LogicalPlan) -> list[tuple[Any, ...]]:
    """The rows a backend gives, floats rounded to what summing in another order leaves."""
    batches = list(backend.run(plan))
    expected = plan.schema.to_arrow()
    assert all(batch.schema == expected for batch in batches)
    columns = [column.to_pylist() for column in pa.Table.from_batches(batches, expected).columns]
    return [
        tuple(float(f"{value:.9g}") if isinstance(value, float) else value for value in row)
        for row in zip(*columns, strict=True)
    ]


def multiset(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(rows)
