"""What our own runtime cannot run in this release is refused before anything starts, with what to write instead."""

from __future__ import annotations

from catalog.errors import PenstockError
from optimizer.properties import PlanFacts
from planner.logical import Join, JoinKind, LogicalPlan, Sink, Sort, WindowTable
from planner.windowing import WindowKind


def check_streamable(plan: LogicalPlan, facts: PlanFacts) -> None:
    """Raise for an optimized streaming plan with a node the runtime does not run.

    SQL-1312 a join kind, SQL-1313 session windows without their own GROUP BY, SQL-1314 an ORDER BY that is not the last word or of endless rows.
    """
    for node in plan.walk():
        match node:
            case Join(kind=kind) if kind not in (JoinKind.INNER, JoinKind.LEFT):
                raise _unsupported_join(kind)
            case WindowTable(window=window) if window.kind is WindowKind.SESSION:
                raise PenstockError(
                    "SQL-1313",
                    "session windows stand only under a GROUP BY of the window",
                    hint="GROUP BY window_start, window_end and exactly the columns of the window's PARTITION BY",
                    sqlstate="0A000",
                )
            case Sink(input=Sort(input=inner)) if not facts.finite(inner):
                raise _unsupported_order("an endless result has no order")
            case Sort() if not any(isinstance(sink, Sink) and sink.input is node for sink in plan.walk()):
                raise _unsupported_order("on a stream ORDER BY without LIMIT can only be the last clause")


def _unsupported_join(kind: JoinKind) -> PenstockError:
    hints = {
        JoinKind.FULL: "write a LEFT JOIN, or UNION ALL two of them",
        JoinKind.SEMI: "write an inner JOIN with SELECT DISTINCT of the subquery's columns",
        JoinKind.ANTI: "write a LEFT JOIN with WHERE .. IS NULL",
    }
    message = f"a {kind.value.upper()} join on a stream is not part of this release"
    return PenstockError("SQL-1312", message, hint=hints.get(kind, "write a LEFT JOIN"), sqlstate="0A000")


def _unsupported_order(message: str) -> PenstockError:
    return PenstockError("SQL-1314", message, hint="add LIMIT n to keep the first rows up to date, or drop ORDER BY", sqlstate="0A000")
