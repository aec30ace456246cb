"""The statements of a stored catalog, run again: one that fails takes no other with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
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
    waiting: list[tuple[int, str, str]] = []
    broken: dict[int, BrokenStatement] = {}
    for position, text in enumerate(texts):
        try:
            if isinstance(parse(text)[0].node, Use):
                use = text
            else:
                waiting.append((position, use, text))
        except PenstockError as error:
            broken[position] = BrokenStatement(use, text, error)
    before = len(waiting) + 1
    while len(waiting) < before:
        before = len(waiting)
        failed: list[tuple[int, str, str]] = []
        for position, led, text in waiting:
            broken.pop(position, None)
            failure = _run_one(led, text, parse, run)
            if failure is None or failure.code in passed_over:
                continue
            broken[position] = BrokenStatement(led, text, failure)
            if failure.code.startswith(_MAY_COME):
                failed.append((position, led, text))
        waiting = failed
    return [broken[position] for position in sorted(broken)]


def _run_one(
    use: str,
    text: str,
    parse: Callable[[str], list[LocatedStatement]],
    run: Callable[[LocatedStatement], None],
) -> PenstockError | None:
    """Run a statement where ``use`` leads. Return why it failed."""
    try:
        for each in (use, text):
            for statement in parse(each):
                run(statement)
    except PenstockError as error:
        return error
    return None
