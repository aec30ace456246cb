"""The rows of the system tables, as Arrow: the facts of all jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.catalog.system_tables import SYSTEM, SYSTEM_TABLES
from penstock.client.monitoring.job_facts import job_facts, job_summary

if TYPE_CHECKING:
    from penstock.client.monitoring.job_facts import JobFacts, JobSummary, OperatorStatus
    from penstock.engine.job.job import Job

Row = dict[str, Any]


def job_rows(jobs: Iterable[Job], statements: Mapping[str, str]) -> pa.Table:
    """Return the rows of ``system.jobs``; ``statements``: the text of each job's statement, by job id."""
    return system_rows("jobs", [_job(job_summary(job), statements.get(job.job_id)) for job in jobs])


def fact_rows(name: str, jobs: Iterable[Job]) -> pa.Table:
    """Return the rows of a system table about the parts of jobs: operators, splits, checkpoints, watermarks
    or errors.
    """
    return system_rows(name, [row for job in jobs for row in _OF_JOB[name](job_facts(job))])


def system_rows(name: str, rows: Sequence[Row]) -> pa.Table:
    """Return rows with the columns of a system table. A column that a row lacks is NULL."""
    schema = SYSTEM_TABLES[f"{SYSTEM}.{name}"].schema.to_arrow()
    # some hundred rows at most: a row is an object of the process, and no data
    columns = [
        pa.array([row.get(one.name) for row in rows], _storage(one.type)).cast(one.type) for one in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _storage(kind: pa.DataType) -> pa.DataType:
    # times come as milliseconds
    return pa.timestamp("ms", kind.tz) if pa.types.is_timestamp(kind) else kind


def _job(summary: JobSummary, statement: str | None) -> Row:
    failure = summary.failure
    return {
        **{name: getattr(summary, name) for name in _SAME_OF_JOB},
        "job": summary.job_id,
        "statement": statement,
        "submitted_at": summary.submitted_at_ms,
        "watermark": summary.watermark_ms,
        "error_code": None if failure is None else failure.code,
        "error": None if failure is None else failure.message,
    }


_SAME_OF_JOB = (
    "name",
    "state",
    "parallelism",
    "restarts",
    "rows_in",
    "rows_out",
    "rows_in_per_second",
    "rows_out_per_second",
    "late_rows",
    "bad_rows",
    "state_bytes",
    "watermark_lag_ms",
    "watermark_delay",
    "checkpoints_completed",
    "checkpoints_failed",
    "verdict",
)
"""Columns of ``system.jobs`` that have the name of the fact. Those of operators have too, but for three."""


def _operators(facts: JobFacts) -> list[Row]:
    return [{"job": facts.summary.job_id, **_operator(one)} for one in facts.operators]


def _operator(one: OperatorStatus) -> Row:
    columns = SYSTEM_TABLES[f"{SYSTEM}.operators"].schema.names
    return {
        **{name: getattr(one, name) for name in columns if hasattr(one, name)},
        "operator": one.name,
        "watermark": one.watermark_ms,
        "latency_p99_us": max((figures.p99_us for figures in one.latency), default=None),
    }


def _splits(facts: JobFacts) -> list[Row]:
    return [
        {
            "job": facts.summary.job_id,
            "operator_id": one.operator_id,
            "split": one.split,
            "operator": one.operator,
            "rows_read": one.rows,
            "rows_per_second": one.rows_per_second,
            "pending": one.pending,
            "last_event": one.last_event_ms,
            "watermark": one.watermark_ms,
            "idle": one.idle,
            "delays_watermark": one.delays_watermark,
        }
        for one in facts.splits
    ]


def _checkpoints(facts: JobFacts) -> list[Row]:
    return [
        {
            "job": facts.summary.job_id,
            "checkpoint_id": one.checkpoint_id,
            "kind": one.kind,
            "completed_at": one.completed_at_ms,
            "duration_ms": one.duration_ms,
            "size_bytes": one.size_bytes,
            "new_bytes": one.new_bytes,
            "channel_state_rows": one.channel_state_rows,
            "channel_state_bytes": one.channel_state_bytes,
        }
        for one in facts.checkpoints
    ]


def _watermarks(facts: JobFacts) -> list[Row]:
    delay = facts.delay
    rows = []
    for one in facts.operators:
        delayed = delay is not None and delay.operator_id == one.operator_id
        # a source that is silent has no watermark, but it is the one that all others wait for
        if one.watermark_ms is not None or delayed:
            rows.append(
                {
                    "job": facts.summary.job_id,
                    "operator_id": one.operator_id,
                    "operator": one.name,
                    "watermark": one.watermark_ms,
                    "lag_ms": one.watermark_lag_ms,
                    "waits_for_split": delay.split or None if delay is not None and delayed else None,
                    "reason": delay.sentence if delay is not None and delayed else None,
                }
            )
    return rows


def _errors(facts: JobFacts) -> list[Row]:
    return [
        {
            "job": facts.summary.job_id,
            "number": number,
            "at": event.at_ms,
            "kind": event.kind,
            "message": event.text,
        }
        for number, event in enumerate(facts.events, 1)
    ]


_OF_JOB: dict[str, Callable[[JobFacts], list[Row]]] = {
    "operators": _operators,
    "splits": _splits,
    "checkpoints": _checkpoints,
    "watermarks": _watermarks,
    "errors": _errors,
}
