"""The statements of a stored catalog, run again: one that fails takes no other with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.planner.statements.nodes import Use

if TYPE_CHECKING:
    from penstock.client.statements.dispatch import LocatedStatement

# what a statement reads may be created by a later one; all else would fail again
_MAY_COME = "SQL-"


@dataclass(frozen=True)
class BrokenStatement:
    """A stored statement that could not be run, the USE before it, and why. It stays stored until its name
    is created again.
    """

    use: str
    text: str
    error: PenstockError


def run_stored(
    texts: Sequence[str],
    use: str,
    parse: Callable[[str], list[LocatedStatement]],
    run: Callable[[LocatedStatement], None],
    passed_over: Collection[str] = (),
) -> list[BrokenStatement]:
    """Run stored statements, the first ones where ``use`` leads; return those that could not be run.

    Their order need not be that of what they read: a view that was altered may read what is created below
    it. So those that failed are run again as long as others have succeeded. Errors of the codes
    ``passed_over`` are none.
    """
    pending: list[BrokenStatement] = []
    for text in texts:
        try:
            if isinstance(parse(text)[0].node, Use):
                use = text
                continue
            error = PenstockError(_MAY_COME, "not run yet")
        except PenstockError as caught:
            error = caught
        pending.append(BrokenStatement(use, text, error))
    before = len(pending) + 1
    while len(pending) < before:
        before = len(pending)
        pending = [
            replace(one, error=failure)
            for one in pending
            if (failure := _run_one(one, parse, run)) is not None and failure.code not in passed_over
        ]
    return pending


def _run_one(
    one: BrokenStatement,
    parse: Callable[[str], list[LocatedStatement]],
    run: Callable[[LocatedStatement], None],
) -> PenstockError | None:
    """Run a statement, unless it would fail as before. Return why it failed."""
    if not one.error.code.startswith(_MAY_COME):
        return one.error
    try:
        for text in (one.use, one.text):
            for statement in parse(text):
                run(statement)
    except PenstockError as error:
        return error
    return None
