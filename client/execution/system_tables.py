"""What the system tables of a session show: its jobs, and the session itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.client.execution.engine_jobs import EngineJobs
from penstock.engine.connectors.in_process.system_tables import SystemTables

if TYPE_CHECKING:
    from penstock.engine.api.clock import Clock

_FACTS = ("operators", "splits", "checkpoints", "watermarks", "errors")


def session_tables(jobs: EngineJobs, clock: Clock) -> SystemTables:
    """Return the system tables over the jobs of an engine. A server provides ``sessions`` anew: here it is
    this session alone.
    """
    tables, opened_ms = SystemTables(), clock.wall_ms()
    tables.provide("jobs", partial(_jobs, jobs))
    for name in _FACTS:
        tables.provide(name, partial(_facts, name, jobs))
    tables.provide("sessions", partial(_session, opened_ms))
    return tables


# The facts are imported with the first query of a system table.
def _jobs(jobs: EngineJobs) -> pa.Table:
    from penstock.client.monitoring.system_rows import job_rows

    # list() copies in one step: another thread may submit a job meanwhile
    submitted = dict(list(jobs.submitted.items()))
    return job_rows(jobs.all(), {job_id: one.statement for job_id, one in submitted.items()})


def _facts(name: str, jobs: EngineJobs) -> pa.Table:
    from penstock.client.monitoring.system_rows import fact_rows

    return fact_rows(name, jobs.all())


def _session(opened_ms: int) -> pa.Table:
    from penstock.client.monitoring.system_rows import system_rows

    row = {
        "session": "local",
        "principal": "local",
        "role": "admin",
        "listener": "process",
        "opened_at": opened_ms,
    }
    return system_rows("sessions", [row])
