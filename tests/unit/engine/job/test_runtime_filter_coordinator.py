"""The coordinator of runtime filters: it waits for the keys of all subtasks of a join."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.engine.api.operator import JoinKeys
from penstock.engine.job.runtime_filter_coordinator import RuntimeFilterCoordinator
from penstock.engine.task.messages import OperatorEventReported, TaskId
from penstock.planner.logical.distribution import Forward
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.physical.operator_specs import Chain, ChainEdge, JobGraph
from tests.harness.operator_specs import join_spec, runtime_filter_spec


class Posted:
    """A task's handle that keeps what it is sent."""

    def __init__(self, chain: int, subtask: int) -> None:
        self.task_id, self.messages = TaskId(chain, subtask), []

    def post(self, message: Any) -> None:
        self.messages.append(message)


def test_keys_are_passed_on_when_all_subtasks_of_the_join_have_told_theirs() -> None:
    schema = Schema((Field("k", BIGINT),))
    keys = join_spec(
        "j", "join", schema, schema, schema, JoinKind.SEMI, (0,), (0,), None, (1,), (True, True), pruned=0
    )
    chains = (Chain(0, (runtime_filter_spec("f", "filter", schema, "j", (0,)),), 2), Chain(1, (keys,), 2))
    tasks = [Posted(chain, subtask) for chain in (0, 1) for subtask in (0, 1)]
    filters = RuntimeFilterCoordinator(JobGraph(chains, (ChainEdge(0, 1, 0, Forward()),)), tasks)
    for subtask, value in ((0, 1), (0, 1), (1, 2)):
        assert not any(task.messages for task in tasks)
        filters.on_operator_event(
            OperatorEventReported(
                1, TaskId(1, subtask), "j", "join", JoinKeys(pa.record_batch({"0": [value]}))
            )
        )
    assert [[message.keys.keys.column(0).to_pylist() for message in task.messages] for task in tasks] == [
        [[1, 2]],
        [[1, 2]],
        [],
        [],
    ]
