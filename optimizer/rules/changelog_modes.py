"""The changelog mode of an aggregate: where its sinks replace rows by its keys, the row before an update is
left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from penstock.catalog.connectors.registry import ignores_old_rows, replaces_by_key
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.aggregate import Aggregate, Phase
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.plan_digest import PlanDigests


def changelog_modes(plan: LogicalPlan) -> LogicalPlan:
    """Have aggregates emit upserts, where each reader is a sink that takes them, with projections between at
    most.

    A sink takes them if it forgets rows, or replaces them by exactly the columns that the groups have as
    keys. With other columns an update could leave the old row behind. Filters, joins and other aggregates
    need the old row, to take back what they made of it. The client and materialized views show it.
    """
    digests, facts = PlanDigests(), PlanFacts()
    taken = Counter(
        digests.of(aggregate).rows
        for node in plan.walk()
        if isinstance(node, Sink) and (aggregate := _replaced_by_key(node, facts)) is not None
    )
    if not taken:
        return plan
    # equal subplans are one operator: all its readers must take upserts
    read = Counter(digests.of(node).rows for node in plan.walk() if isinstance(node, Aggregate))
    upserting = {rows for rows, times in taken.items() if times == read[rows]}

    def rewrite(node: LogicalPlan) -> LogicalPlan:
        if isinstance(node, Aggregate) and digests.of(node).rows in upserting:
            return replace(node, upserts=True)
        return node

    return plan.transform(rewrite)


def _replaced_by_key(sink: Sink, facts: PlanFacts) -> Aggregate | None:
    """Return the aggregate whose rows a sink replaces by its keys, if there is one."""
    # rows that are loaded first, or replace a whole table, are staged by other code
    if sink.table is None or sink.history is not None or sink.overwrite is not None:
        return None
    if facts.insert_only(sink.input):
        return None
    # from the sink's columns down to those of the aggregate; None where one is computed
    below: LogicalPlan = sink.input
    places: list[int | None] = list(range(len(below.schema)))
    while isinstance(below, Project):
        columns = [e.index if isinstance(e, Column) else None for e in below.expressions]
        places = [None if place is None else columns[place] for place in places]
        below = below.input
    if not isinstance(below, Aggregate) or below.phase is Phase.LOCAL:
        return None
    if ignores_old_rows(sink.table):
        return below
    keys = {places[column] for column in sink.primary_key()}
    return below if replaces_by_key(sink.table) and keys == set(range(len(below.keys))) else None
