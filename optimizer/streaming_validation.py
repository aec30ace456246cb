"""What our own runtime cannot run is refused before anything starts, with what to write instead."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError, Span
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.expression_properties import is_deterministic, reads_clock
from penstock.planner.expressions.nodes import Call, Expression
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Sort
from penstock.planner.logical.time_attributes import ProcessingTime
from penstock.planner.logical.unnest import Unnest


def check_streamable(plan: LogicalPlan, facts: PlanFacts) -> None:
    """Raise for an optimized streaming plan with a node the runtime does not run; the binder has said the
    same of most with their place in the text.

    SQL-1314 an ORDER BY that is not the last word or of endless rows, SQL-1315 the clock over rows that are
    taken back, SQL-1316 MATCH_RECOGNIZE over such rows, SQL-1322 a lookup join of them, SQL-1323 a snapshot
    join of them.
    """
    last = [sink.input for sink in plan.walk() if isinstance(sink, Sink)]
    for node in plan.walk():
        match node:
            case ProcessingTime(input=inner) if not facts.insert_only(inner):
                raise _clock_over_updates("windows and OVER by processing time take rows that are given once")
            case Project(input=inner, expressions=expressions) if any(
                map(reads_clock, expressions)
            ) and not facts.insert_only(inner):
                raise _clock_over_updates(
                    "the current time cannot be shown beside rows that are taken back: it would "
                    "have gone on by then"
                )
            case MatchRecognize() if not facts.insert_only(node.input):
                raise PenstockError(
                    "SQL-1316",
                    "MATCH_RECOGNIZE reads rows that stay, but its input takes rows back: a match "
                    "would have to be taken back with them",
                    span=node.span,
                    hint="match over the rows before they are aggregated, or over windows: GROUP BY "
                    "window_start, window_end gives each row once",
                    sqlstate="0A000",
                )
            case LookupJoin() if not facts.insert_only(node.left):
                raise PenstockError(
                    "SQL-1322",
                    "a lookup join takes rows that stay, but its input takes rows back: by then the "
                    "table it looked up may say something else",
                    hint="look up before the rows are grouped or joined, or window them, or write EMIT FINAL",
                    sqlstate="0A000",
                )
            case SnapshotJoin() if not facts.insert_only(node.left):
                raise PenstockError(
                    "SQL-1323",
                    "LATERAL SNAPSHOT joins rows that stay, but the left side takes rows back: by "
                    "then the table may say something else",
                    hint="join before the rows are grouped or joined, or window them, or write EMIT "
                    "FINAL; or join the table itself: JOIN t ON ..",
                    sqlstate="0A000",
                )
            case Sink(input=Sort(input=inner)) if not facts.finite(inner):
                raise _unsupported_order("an endless result has no order")
            case Sort() if not any(node is known for known in last):
                raise _unsupported_order("on a stream ORDER BY without LIMIT can only be the last clause")
        if not all(map(facts.insert_only, node.inputs)):
            _check_steady(node)


def _clock_over_updates(message: str) -> PenstockError:
    hint = (
        "read the clock before the rows are grouped or joined, or window the rows so that each is given once"
    )
    return PenstockError("SQL-1315", message, hint=hint, sqlstate="0A000")


def _check_steady(node: LogicalPlan) -> None:
    """A row that is taken back must be the row that was given, so nothing computed of it may have another
    value by then.
    """
    if isinstance(node, Unnest) and node.call.body is not None and not node.call.body.deterministic:
        raise _wavers(node.call.function, None)

    def steady(expression: Expression) -> Expression:
        wavering = [
            part for part in expression.walk() if isinstance(part, Call) and not is_deterministic(part)
        ]
        if wavering:  # the last holds no other: parents come first
            raise _wavers(wavering[-1].function, wavering[-1].span)
        return expression

    node.map_expressions(steady)


def _wavers(function: str, span: Span | None) -> PenstockError:
    return PenstockError(
        "SQL-1315",
        f"{function} may give another value when a row is taken back, and the rows here are updated",
        span=span,
        hint="compute it on the rows as they come, before what updates them, or declare the function "
        "deterministic if it is",
        sqlstate="0A000",
    )


def _unsupported_order(message: str) -> PenstockError:
    return PenstockError(
        "SQL-1314",
        message,
        hint="select what it orders by too, add LIMIT n to keep the first rows up to date, or drop ORDER BY",
        sqlstate="0A000",
    )
