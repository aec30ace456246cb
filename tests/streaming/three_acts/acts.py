"""Runs the scripts of ``queries/`` act by act: their streaming statement as a job whose changes are kept,
stopped and gone on with.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.connectors.in_process.result_channels import ResultChannel
from penstock.engine.job.job import Job
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.operator_specs import JobGraph
from penstock.planner.statements.nodes import Insert, Query
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.oracle import ROOT


@dataclass
class Folded:
    """What a changelog adds up to, row by row; refuses to take back what was never given."""

    rows: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def take(self, channel: ResultChannel, timeout_s: float) -> bool:
        """Fold one batch of the channel; return whether there was one."""
        batch = channel.next(timeout_s)
        if batch is None:
            return False
        columns = [column.to_pylist() for column in batch.rows.columns]
        weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
        touched = []
        for row, weight in zip(zip(*columns, strict=True), weights, strict=True):
            self.rows[row] += weight
            touched.append(row)
        for row in touched:
            assert self.rows[row] >= 0, f"{row} was taken back before it was given"
            if self.rows[row] == 0:
                del self.rows[row]
        return True


class Script:
    """A script of ``queries/``: its tables declared in a session, its one streaming query planned at any
    parallelism.

    Only the SELECT of an INSERT is run, so that every query gives its changes to a collect sink.
    """

    def __init__(self, name: str, settings: dict[str, str], text: str | None = None) -> None:
        self.session = Session({"bounded.backend": "duckdb", **settings})
        # as submitting by a statement does
        self.session.state.backends.default = str(self.session.settings.get("bounded.backend"))
        text = text or (ROOT / "queries" / f"{name}.sql").read_text(encoding="utf-8").replace(
            "queries/data/", f"{ROOT}/queries/data/"
        )
        for statement in self.session.parse(text, f"{name}.sql"):
            if isinstance(statement.node, Insert | Query):
                query = statement.node.query if isinstance(statement.node, Insert) else statement.node
                break
            self.session.run(statement)
        else:
            raise AssertionError(f"{name}.sql has no query")
        self.query = query

    def graph(self, parallelism: int) -> tuple[JobGraph, str]:
        """Return the job of the query and the id of its collect sink."""
        self.session.settings.set("parallelism.default", str(parallelism))
        graph = self.session.pipeline.plan(self.session.pipeline.bind(self.query)).graph
        assert graph is not None
        sinks = [
            spec.operator_id
            for chain in graph.chains
            for spec in chain.operators
            if isinstance(spec.node, Sink)
        ]
        return graph, sinks[0]

    def submit(
        self, parallelism: int, state_dir: Path | None, checkpoint_interval_ms: int
    ) -> tuple[Job, ResultChannel]:
        """Start the job, or go on with it from the last checkpoint in ``state_dir``."""
        self.session.state.state_dir = state_dir  # what outlives the process is planned for any parallelism
        graph, sink = self.graph(parallelism)
        self.session.state.channels.release(sink)
        channel = self.session.state.channels.channel(sink)
        options = JobOptions.from_settings(self.session.settings, name="act", state_dir=state_dir)
        options = replace(options, checkpoint_interval_ms=checkpoint_interval_ms)
        return self.session.state.jobs.manager.submit(graph, options, "act" if state_dir else None), channel

    def close(self) -> None:
        """Release the session."""
        self.session.close()


def rows_read(job: Job) -> int:
    """Return how many rows the replayed source has given (the one that has given most, where there are
    several).
    """
    return max(
        (operator.rows_out for operator in job.metrics().operators if operator.name.startswith("source ")),
        default=0,
    )


def run_to_end(job: Job, channel: ResultChannel, folded: Folded) -> None:
    """Take all changes until the job has ended well."""
    deadline = time.monotonic() + PATIENCE_S
    while not (channel.ended or job.wait(0)):
        folded.take(channel, 0.05)
        assert time.monotonic() < deadline, (
            f"the job does not end: {job.state}, last failure {job.last_failure}"
        )
    while folded.take(channel, 0.05):
        pass
    assert job.wait(PATIENCE_S)
    if job.error is not None:
        raise job.error


def run_and_stop(job: Job, channel: ResultChannel, folded: Folded, after_rows: int) -> None:
    """Take changes until the source has given ``after_rows``, then stop the job with a checkpoint and take
    what it had given by then.
    """
    deadline = time.monotonic() + PATIENCE_S
    while rows_read(job) < after_rows:
        folded.take(channel, 0.001)
        assert not job.wait(0), "the job ended before it could be stopped"
        assert time.monotonic() < deadline, (
            f"the job does not get on: {job.state}, last failure {job.last_failure}"
        )
    job.stop()
    run_to_end(job, channel, folded)
