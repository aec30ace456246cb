"""Graphs made into tasks: which ports are read first, which edges are possible, which operators are known."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.checkpoint.plan_identity import plan_identity
from penstock.engine.operators.factory import build_operator
from penstock.engine.task_manager.task_deployment import Deployer
from penstock.planner.logical.distribution import Forward, Partition
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.physical.operator_specs import Chain, ChainEdge, JobGraph
from tests.harness.operator_specs import calc_spec, join_spec, union_spec
from tests.harness.runtime.fakes import (
    SCHEMA,
    build,
    numbers_spec,
    pass_spec,
    services,
    window_job,
)


def join_graph(*edges: ChainEdge) -> JobGraph:
    join = join_spec(
        "join", "join", SCHEMA, SCHEMA, SCHEMA, JoinKind.INNER, (0,), (0,), None, (1,), (True, True)
    )
    sources = tuple(Chain(i, (numbers_spec(f"s{i}", f"s{i}", SCHEMA),), 1) for i in range(2))
    passes = tuple(Chain(i, (pass_spec(f"p{i}", f"p{i}", SCHEMA),), 1) for i in (2, 3))
    return JobGraph((*sources, *passes, Chain(4, (join,), 1)), edges)


def deployer(graph: JobGraph) -> Deployer:
    return Deployer(
        graph, JobOptions(), services(), ManualClock(), build, keep_snapshots=False, job_id="job", owner="job"
    )


def bounded_ports(graph: JobGraph) -> tuple[int, ...]:
    return deployer(graph)._bounded_ports(graph.chains[4], graph.inputs_of(4))


def test_a_bounded_side_is_read_first_unless_both_sides_hang_on_one_source() -> None:
    left, right = ChainEdge(2, 4, 0, Partition((0,))), ChainEdge(3, 4, 1, Partition((0,)))
    assert bounded_ports(
        join_graph(ChainEdge(0, 2, 0, Forward()), ChainEdge(1, 3, 0, Forward()), left, right)
    ) == (1,)
    assert (
        bounded_ports(join_graph(ChainEdge(0, 2, 0, Forward()), ChainEdge(0, 3, 0, Forward()), left, right))
        == ()
    )


def test_a_forward_edge_needs_equal_parallelism() -> None:
    graph = window_job([()], parallelism=2)
    chains = (graph.chains[0], graph.chains[1], Chain(2, graph.chains[2].operators, 3))
    with pytest.raises(PenstockError, match="forward edge from 2 to 3 subtasks"):
        deployer(JobGraph(chains, graph.edges, 16)).tasks(1, None, 0, print, lambda slot: lambda: None)


def test_an_unknown_spec_is_a_bug_that_is_named() -> None:
    with pytest.raises(PenstockError, match="no operator for Pass"):
        build_operator(pass_spec("p", "p", SCHEMA), JobOptions())


def test_only_operators_with_state_make_the_fingerprint() -> None:
    calc, union = calc_spec("calc", "calc", SCHEMA, None, None), union_spec("union", "union", SCHEMA, 2)
    assert not calc.node.keeps_state
    assert not union.node.keeps_state
    graph = window_job([()], parallelism=2)
    wider = JobGraph((*graph.chains, Chain(9, (calc, union), 4)), graph.edges, 16)
    assert plan_identity(graph).fingerprint == plan_identity(wider).fingerprint
    assert plan_identity(window_job([()], parallelism=3)).fingerprint == plan_identity(graph).fingerprint
