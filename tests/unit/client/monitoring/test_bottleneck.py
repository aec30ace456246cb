"""The slowest task of a job by how its tasks spend their time."""

from __future__ import annotations

import pytest

from penstock.client.monitoring.bottleneck import bottleneck
from penstock.engine.metrics.busy_time import TimeShares
from penstock.engine.metrics.task_metrics import OperatorFigures, TaskFigures


def task(name: str, busy: float, idle: float, backpressured: float) -> TaskFigures:
    shares = TimeShares(busy, idle, backpressured)
    return TaskFigures(0, 0, "running", False, (OperatorFigures("id", name),), shares, shares)


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        (
            [task("source t", 40, 10, 950), task("join", 980, 20, 0)],
            "slowest: task 0 of join, busy 98% of the time; source t waits for buffers",
        ),
        (
            [task("source t", 900, 100, 0), task("sink s", 10, 990, 0)],
            "slowest: task 0 of source t, busy 90% of the time",
        ),
        (
            [task("source t", 40, 10, 950), task("sink s", 70, 0, 930)],
            "slowest: sink s, which takes no more rows 93% of the time: the sink is the bottleneck",
        ),
        (
            [task("source t", 40, 960, 0)],
            "slowest: nothing is, no task is busy more than 4% of the time: the sources set the pace",
        ),
        ([], "slowest: no task runs"),
    ],
)
def test_it_is_named(tasks: list[TaskFigures], said: str, running: bool) -> None:
    assert bottleneck(tasks, running=running) == said
