"""The table of operators: each node that may be run has an entry, and each class it names takes a spec."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from penstock.engine.api.operator import Operator
from penstock.engine.operators import factory
from penstock.planner.logical import plan
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.recursive_query import RecursiveQuery, TermInput, WorkTable
from penstock.planner.logical.scan import HistoryScan
from penstock.planner.logical.sink import StatementSet
from penstock.planner.logical.sort import Sort
from penstock.planner.physical.operator_specs import InputSchema

BASES = {plan.ParallelNode, plan.UnaryNode, plan.PassThroughNode, BinaryJoin}
# Fused into a Calc, an edge, ordered by the client, read by a backend, split into sinks, planned as a Recursion: no
# operator runs them.
NOT_RUN = {Filter, Project, Exchange, Sort, HistoryScan, StatementSet, InputSchema}
NOT_RUN |= {RecursiveQuery, WorkTable, TermInput}
# they run operators inside themselves
RUN_OTHERS = ("HistorySourceOperator", "RecursiveUnionOperator", "RecursiveUnionAllOperator")


def nodes(kind: type[LogicalPlan] = LogicalPlan) -> Iterator[type[LogicalPlan]]:
    for sub in kind.__subclasses__():
        if sub.__module__.startswith(("penstock.planner.logical.", "penstock.planner.physical.")):
            yield sub
        yield from nodes(sub)


def test_every_node_has_an_entry() -> None:
    assert set(nodes()) - BASES - NOT_RUN == set(factory.OPERATOR_CLASSES)


def test_every_class_is_there() -> None:
    """Those of choices too: all strings of the file that name a class."""
    tree = ast.parse(Path(factory.__file__).read_text(encoding="utf-8"))
    names = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and str(node.value).startswith("penstock.")
        and ":" in str(node.value)
    }
    assert len(names) > len(factory.OPERATOR_CLASSES)
    for name in names:
        module, _, class_name = name.partition(":")
        made = getattr(import_module(module), class_name)
        assert issubclass(made, Operator), name
        parameters = list(inspect.signature(made).parameters)
        extra = ["build"] if class_name in RUN_OTHERS else []
        assert parameters == ["spec", "options", *extra], name
