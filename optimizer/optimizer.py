"""The rules, in order, and the loop that applies them.

The stages after the binder are:

- ``optimize`` with the general rules
- ``bounded_subplans.choose_runtime``
- ``optimize`` again, for the chosen runtime
- ``sink_validation.check_sinks``
- ``exchange_placement.lay_edges``
- ``penstock.planner.physical.physical_planner.plan_job`` for what our own runtime runs
"""

from __future__ import annotations

from collections.abc import Callable, Collection, MutableMapping

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Schema
from penstock.optimizer.rules.changelog_modes import changelog_modes
from penstock.optimizer.rules.derive_join_keys import join_keys_from_filter
from penstock.optimizer.rules.fold_constants import fold_constants
from penstock.optimizer.rules.fuse_count_windows import fuse_count_windows
from penstock.optimizer.rules.fuse_window_aggregates import fuse_windows
from penstock.optimizer.rules.merge_projects import merge_projects
from penstock.optimizer.rules.nearest_rows import nearest_rows, nearest_rows_on_backends, nearest_values
from penstock.optimizer.rules.prune_columns import (
    drop_unread_watermarks,
    prune_columns,
    prune_tied_columns,
)
from penstock.optimizer.rules.prune_nested_fields import narrow_rows
from penstock.optimizer.rules.push_filters import push_filters, push_filters_past_watermarks
from penstock.optimizer.rules.rank_to_top_n import first_of_partitions
from penstock.optimizer.rules.remove_redundant import remove_redundant
from penstock.optimizer.rules.runtime_filters import runtime_filters
from penstock.optimizer.rules.share_scans import share_sources
from penstock.optimizer.rules.simplify_predicates import simplify_predicates
from penstock.optimizer.rules.two_phase_aggregates import split_aggregates
from penstock.optimizer.rules.window_best_filters import window_best_filters
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.recursive_query import RecursiveQuery
from penstock.planner.logical.sink import StatementSet


@dataclass(frozen=True)
class Rule:
    """A rewrite that keeps a plan's meaning. ``only`` names the purpose it serves: ``batch``,
    ``streaming`` or ``parallel`` streaming plans. ``in_terms``: recursive terms are rewritten too.
    """

    rewrite: Callable[[LogicalPlan], LogicalPlan]
    only: str | None = None
    in_terms: bool = False

    def apply(self, plan: LogicalPlan) -> LogicalPlan:
        """Return the rewritten plan."""
        rewritten = self.rewrite(plan)
        if not self.in_terms:
            return rewritten
        return rewritten.transform(
            lambda node: node.map_term(self.rewrite) if isinstance(node, RecursiveQuery) else node
        )

    @property
    def name(self) -> str:
        """The name EXPLAIN RULES prints and ``optimizer.disabled-rules`` takes."""
        return self.rewrite.__name__


RULES: tuple[Rule, ...] = (
    # First of the rules for streams: filters stay above a watermark.
    Rule(drop_unread_watermarks, only="streaming"),
    # Constants first: the identities of the next rule see TRUE, FALSE and NULL instead of 1 < 2.
    Rule(fold_constants, in_terms=True),
    Rule(simplify_predicates, in_terms=True),
    # Filters go down before joins take their keys from what is left above them.
    Rule(push_filters, in_terms=True),
    # In a stream the watermark counts rows that a filter below it would drop.
    Rule(push_filters_past_watermarks, only="batch"),
    Rule(first_of_partitions),
    Rule(join_keys_from_filter, in_terms=True),
    Rule(fuse_windows),
    Rule(fuse_count_windows, only="streaming"),
    Rule(prune_columns),
    Rule(prune_tied_columns),
    # After pruning: readers of one table then differ in their columns.
    Rule(share_sources, only="streaming"),
    Rule(split_aggregates, only="parallel"),
    # The rules above leave projections over projections.
    Rule(merge_projects, in_terms=True),
    Rule(remove_redundant, in_terms=True),
    # After projections are merged: one is between the ranked rows and their join at most.
    Rule(nearest_rows, only="streaming"),
    Rule(nearest_values, only="streaming"),
    Rule(nearest_rows_on_backends, only="batch"),
    Rule(narrow_rows, only="streaming"),
    Rule(runtime_filters, only="streaming"),
    # After all rules that move columns or share sources: it compares the branches of a self join.
    Rule(window_best_filters, only="streaming"),
    # Last: it looks at what is between an aggregate and its sinks.
    Rule(changelog_modes, only="streaming"),
)

# State that was written before a rule came is restored into a plan that is made without it: for each version
# the rules that it had not yet, the newest version first.
NEWER_THAN_STATE = tuple(
    tuple(rule.__name__ for rule in rules)
    for rules in ((nearest_values,), (nearest_values, prune_tied_columns, drop_unread_watermarks))
)

# Not in RULES, as it needs the bounded subplans; ``optimizer.disabled-rules`` names it all the same.
BETWEEN = ("share_bounded",)

Observer = Callable[[str, LogicalPlan, LogicalPlan], None]


def optimize(
    plan: LogicalPlan,
    *,
    disabled: Collection[str] = frozenset(),
    observer: Observer | None = None,
    runtime: str | None = None,
    parallelism: int = 1,
    now_ms: Callable[[], float] | None = None,
    timings_ms: MutableMapping[str, float] | None = None,
) -> LogicalPlan:
    """Return an equivalent plan that does less.

    ``runtime`` is None before it is chosen, then ``batch`` or ``streaming``. With ``parallelism`` > 1 a
    streaming plan also gets the rules that save work before an exchange. ``observer(rule_name, before,
    after)`` is called for each rule that ran; with a clock (milliseconds), ``timings_ms`` collects what each
    took. Raises SQL-1401 for a disabled rule that does not exist, and INT-9002 for a rule that changed what
    the plan gives.
    """
    _check_names(disabled)
    # A rule without a purpose runs in both passes, before and after the runtime is chosen.
    purposes = {None, runtime, "parallel" if runtime == "streaming" and parallelism > 1 else None}
    for rule in RULES:
        if rule.name in disabled or rule.only not in purposes:
            continue
        started_ms = now_ms() if now_ms else 0.0
        rewritten = rule.apply(plan)
        if now_ms and timings_ms is not None:
            timings_ms[rule.name] = timings_ms.get(rule.name, 0.0) + now_ms() - started_ms
        # A rule that changes names or types is a fault: sinks and state are laid out by them.
        _check_layout(rule.name, plan, rewritten)
        if observer is not None:
            observer(rule.name, plan, rewritten)
        plan = rewritten
    return plan


def rule_names() -> list[str]:
    """Return the names of all rules in the order they run, then of what
    ``penstock.optimizer.bounded_subplans`` does between them.
    """
    return [*(rule.name for rule in RULES), *BETWEEN]


def _check_names(disabled: Collection[str]) -> None:
    for name in disabled:
        if name not in rule_names():
            raise PenstockError(
                "SQL-1401",
                f'there is no optimizer rule "{name}"',
                hint=did_you_mean(name, rule_names(), others=True),
            )


def _check_layout(rule: str, before: LogicalPlan, after: LogicalPlan) -> None:
    for old, new in zip(_layouts(before), _layouts(after), strict=True):
        if not old.same_layout(new):
            detail = (
                f"before: {', '.join(f'{f.name} {f.type}' for f in old)}\nafter: "
                f"{', '.join(f'{f.name} {f.type}' for f in new)}"
            )
            raise PenstockError(
                "INT-9002",
                f"optimizer rule {rule} changed the plan's result",
                detail=detail,
                kind=Kind.INTERNAL,
                sqlstate="XX000",
            )


def _layouts(plan: LogicalPlan) -> list[Schema]:
    return [sink.schema for sink in plan.sinks] if isinstance(plan, StatementSet) else [plan.schema]
