"""Hints PARALLELISM that no operator of a planned query obeys: each is noted, none is passed over."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.planner.logical.distribution import SubtaskHint
from penstock.planner.logical.plan import LogicalPlan, ParallelNode
from penstock.planner.logical.recursive_query import RecursiveQuery
from penstock.planner.logical.scan import BoundedInput


def unheeded_hints(
    bound: LogicalPlan, optimized: LogicalPlan, laid: LogicalPlan | None = None
) -> Iterator[str]:
    """Yield a note for each hint of a bound plan that no operator has.

    ``laid`` is the optimized plan with exchanges; None where a bounded backend computes the whole query.
    """
    wanted = dict.fromkeys((*_hints(bound), *_hints_of_terms(bound)))
    if not wanted:
        return
    kept = set() if laid is None else set(_hints(laid))
    single = set() if laid is None else set(_hints(optimized))
    backends = (node.plan for node in optimized.walk() if isinstance(node, BoundedInput))
    computed = set(wanted) if laid is None else {hint for plan in backends for hint in _hints(plan)}
    recursive = set(_hints_of_terms(optimized))
    for hint in wanted.keys() - kept:
        if hint in computed:
            why = "the bounded backend computes that part, as its tables are bounded, with all its threads"
        elif hint in recursive:
            why = "the steps of WITH RECURSIVE run inside of one operator"
        elif hint in single:
            why = "without keys to part them all its rows go to one subtask"
        else:
            why = "the optimizer left its operator out"
        yield f"the hint {hint.text} has no effect: {why}"


def has_hints(plan: LogicalPlan) -> bool:
    """Return whether a hint asks for the subtasks of an operator."""
    return next(_hints(plan), None) is not None


def _hints(plan: LogicalPlan) -> Iterator[SubtaskHint]:
    for node in plan.walk():
        if isinstance(node, ParallelNode) and node.subtasks is not None:
            yield node.subtasks


def _hints_of_terms(plan: LogicalPlan) -> Iterator[SubtaskHint]:
    """Yield the hints of the steps of recursive queries, which are no inputs."""
    for node in plan.walk():
        if isinstance(node, RecursiveQuery):
            yield from _hints(node.term)
            yield from _hints_of_terms(node.term)
