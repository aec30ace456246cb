"""Our plans as SQL over Spark's streams: windows in Spark's own words, so that its watermarks close them."""

from __future__ import annotations

from sqlglot import exp

from penstock.planner.logical.aggregate import Phase, WindowAggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import HopWindow, SessionWindow, TumbleWindow, Windowing
from penstock.planner.sql_generator.dialect import binary, function, text
from penstock.planner.sql_generator.query import ScannedTable, _columns, _PlanText
from penstock.planner.sql_generator.spark.dialect import SparkFlavour
from penstock.planner.sql_generator.windows import aliased, column

_WINDOW = exp.column("w", table="x")


class NotPrintedError(Exception):
    """A plan Spark's streams have no words for."""


class _StreamText(_PlanText):
    """As for bounded tables; a window is a column ``w`` of Spark's ``window`` or ``session_window``, taken
    apart in a select of its own.
    """

    def _window_table(self, plan: WindowTable) -> exp.Expr:
        width = len(plan.input.schema)
        items = [*_columns(width), exp.alias_(_window(plan.window), "w")]
        windowed = self.add(exp.select(*items).from_(aliased(self.relation(plan.input))))
        return exp.select(*_columns(width), *_bounds(width, plan.window)).from_(aliased(windowed))

    def _window_aggregate(self, plan: WindowAggregate) -> exp.Expr:
        if not isinstance(plan.window, Windowing) or plan.phase is not Phase.SINGLE:
            raise NotPrintedError("windows that are on the rows already")
        items, width = self._aggregates(plan), len(plan.keys) + len(plan.aggregates)
        window = _window(plan.window)
        grouped = exp.select(*items, exp.alias_(window, "w")).from_(aliased(self.relation(plan.input)))
        named = self.add(grouped.group_by(*(column(key) for key in plan.keys), window.copy()))
        return exp.select(*_columns(width), *_bounds(width, plan.window)).from_(aliased(named))


def printed(plan: LogicalPlan) -> tuple[str, tuple[ScannedTable, ...]]:
    """Return the text of a plan and the relations it reads as ``t_0, t_1, ..``; its columns are c0, c1, .."""
    flavour = SparkFlavour()
    writer = _StreamText(flavour)
    root = writer.relation(plan.input if isinstance(plan, Sink) else plan)
    bodies: dict[str, exp.Expr] = {}
    # Spark sorts streams only where it sees the aggregate beneath, which it does not through WITH
    for name, body in writer.ctes:
        bodies[name] = _inlined(body, bodies)
    return bodies[root].sql(flavour.dialect), tuple(writer.relations)


def _inlined(body: exp.Expr, bodies: dict[str, exp.Expr]) -> exp.Expr:
    """A select with the bodies of those it reads in place of their names."""
    for table in list(body.find_all(exp.Table)):
        if table.name in bodies:
            table.replace(
                exp.Subquery(
                    this=bodies[table.name].copy(), alias=exp.TableAlias(this=exp.to_identifier(table.alias))
                )
            )
    return body


def _window(window: Windowing) -> exp.Expr:
    time, size = column(window.time_column), text(f"{window.size_us} microseconds")
    match window:
        case TumbleWindow():
            return function("window", time, size)
        case HopWindow():
            return function("window", time, size, text(f"{window.step_us} microseconds"))
        case SessionWindow():
            return function("session_window", time, size)
    raise NotPrintedError(f"windows of kind {window.name}")


def _bounds(width: int, window: Windowing) -> list[exp.Expr]:
    """Window start, end and time; the time of tumbling and hopping windows is Spark's own, which its
    watermark goes on with (1 us before the end).
    """
    start, end = (
        exp.Dot(this=_WINDOW.copy(), expression=exp.to_identifier("start")),
        exp.Dot(this=_WINDOW.copy(), expression=exp.to_identifier("end")),
    )
    millisecond = exp.Interval(this=text("0.001"), unit=exp.var("SECOND"))
    time = (
        binary(exp.Sub, end.copy(), millisecond)
        if isinstance(window, SessionWindow)
        else function("window_time", _WINDOW.copy())
    )
    return [exp.alias_(item, f"c{width + i}") for i, item in enumerate((start, end, time))]
