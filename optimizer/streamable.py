"""What our own runtime cannot run is refused before anything starts, with what to write instead."""

from __future__ import annotations

from catalog.errors import PenstockError
from optimizer.properties import PlanFacts
from planner.logical import LogicalPlan, Sink, Sort, WindowTable
from planner.windowing import WindowKind


def check_streamable(plan: LogicalPlan, facts: PlanFacts) -> None:
    """Raise for an optimized streaming plan with a node the runtime does not run; the binder has said the same of most with their place in the text.

    SQL-1313 session windows without their own GROUP BY, SQL-1314 an ORDER BY that is not the last word or of endless rows.
    """
    last = [sink.input for sink in plan.walk() if isinstance(sink, Sink)]
    for node in plan.walk():
        match node:
            case WindowTable(window=window) if window.kind is WindowKind.SESSION:
                raise PenstockError(
                    "SQL-1313",
                    "session windows stand only under a GROUP BY of the window",
                    hint="GROUP BY window_start, window_end and exactly the columns of the window's PARTITION BY",
                    sqlstate="0A000",
                )
            case Sink(input=Sort(input=inner)) if not facts.finite(inner):
                raise _unsupported_order("an endless result has no order")
            case Sort() if not any(node is known for known in last):
                raise _unsupported_order("on a stream ORDER BY without LIMIT can only be the last clause")


def _unsupported_order(message: str) -> PenstockError:
    return PenstockError(
        "SQL-1314", message, hint="select what it orders by too, add LIMIT n to keep the first rows up to date, or drop ORDER BY", sqlstate="0A000"
    )
