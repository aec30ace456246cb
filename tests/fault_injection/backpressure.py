"""The card of backpressure: a source that could give a hundred times what the sink takes. What is in flight
stays within the channels' bounds.

The client who reads the result sleeps after every batch. Rows are wide, so that channels fill by bytes as
well as by elements.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from penstock.client.session import Session
from penstock.engine.exchange.channel import CHANNEL_BYTES
from penstock.engine.job.job_metrics import JobMetrics
from tests.fault_injection.verdict import Verdict
from tests.harness.patience import PATIENCE_S

BATCH_ROWS = 1024
PIECES = 4
"""What one piece of work may put into a channel beyond its capacity: a batch and the control elements
around it.
"""
CHANNELS = 4
WARM_SHARE = 0.2
MB_PER_MINUTE = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes",
        type=float,
        default=0.05,
        help="how long to flood; from 1 on the growth of memory is judged too",
    )
    parser.add_argument("--width", type=int, default=100, help="bytes of text in each row")
    parser.add_argument(
        "--pause", type=float, default=0.1, help="seconds the client sleeps after each batch of the result"
    )


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    verdict.least = {"the source waited for credit": 3, "rows came to the sink": 1}
    resident: list[tuple[float, float]] = []
    began = time.monotonic()
    for metrics in flood(arguments.minutes * 60, arguments.width, arguments.pause):
        judge(metrics, verdict)
        resident.append((time.monotonic() - began, resident_mb()))
    verdict.figures["resident MB"] = round(resident[-1][1], 1)
    if arguments.minutes >= 1:
        times, sizes = np.array(
            [sample for sample in resident if sample[0] >= WARM_SHARE * resident[-1][0]]
        ).T
        slope = float(np.polyfit(times, sizes, 1)[0] * 60)
        verdict.figures["MB per minute"] = round(slope, 2)
        verdict.check(slope <= MB_PER_MINUTE, f"memory grew by {slope:.2f} MB a minute")


def flood(seconds: float, width: int, pause_s: float) -> Iterator[JobMetrics]:
    """Run the job for a while from its first rows on, taking one batch of its result every ``pause_s``;
    yield its numbers each time.
    """
    session = Session(
        {
            "execution.runtime-mode": "streaming",
            "parallelism.default": "2",
            "execution.batch.max-rows": str(BATCH_ROWS),
        }
    )
    session.execute("SET 'optimizer.split-aggregates' = 'false'")
    session.execute(
        "CREATE TABLE flood (n BIGINT, text STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '0', 'splits' = '2', "
        f"'number-of-rows' = '2000000000', 'fields.n.kind' = 'sequence', 'fields.text.length' = '{width}')"
    )
    try:
        result = session.execute(
            "SELECT n % 100 AS k, COUNT(*) AS c, MAX(text) AS t FROM flood GROUP BY n % 100"
        )
        job = result.job
        assert job is not None
        assert result.next(PATIENCE_S) is not None, job.error
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert not job.state.terminal, job.error
            assert result.next(PATIENCE_S) is not None, job.error
            yield job.metrics()
            time.sleep(pause_s)
    finally:
        session.close()


def judge(metrics: JobMetrics, verdict: Verdict) -> None:
    """Check one reading: queues within their capacity, rows in flight and polled within what queues can
    hold, the source waiting.
    """
    capacity = max(task.queues.capacity for task in metrics.tasks)
    longest = max(task.queues.length for task in metrics.tasks)
    heaviest = max(task.queues.size_bytes for task in metrics.tasks)
    given = metrics.rows_in
    taken = sum(operator.rows_in for operator in metrics.operators if operator.name.startswith("aggregate"))
    figures = verdict.figures
    for name, value in (
        ("longest queue", longest),
        ("largest queue MB", round(heaviest / 1e6, 2)),
        ("rows in flight", given - taken),
    ):
        figures[name] = max(figures.get(name, 0), value)
    figures["rows polled"] = given
    verdict.check(
        longest <= capacity + 2 * PIECES, f"{longest} elements wait in channels meant for {capacity}"
    )
    verdict.check(
        heaviest <= 2 * CHANNEL_BYTES, f"{heaviest} bytes wait in two channels meant for {CHANNEL_BYTES} each"
    )
    most = (CHANNELS * (capacity // 2 + PIECES) + 2 * PIECES) * BATCH_ROWS
    verdict.check(
        given - taken <= most, f"{given - taken} rows are in flight, more than the {most} that are allowed"
    )
    verdict.coverage["the source waited for credit"] += all(
        task.per_second.backpressured >= 500 for task in metrics.tasks if task.is_source
    )
    verdict.coverage["rows came to the sink"] += any(
        operator.rows_in > 0 for operator in metrics.operators if operator.name.startswith("sink ")
    )


def resident_mb() -> float:
    """Return the memory this process has in use, megabytes."""
    return (
        int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        * os.sysconf("SC_PAGE_SIZE")
        / 1e6
    )
