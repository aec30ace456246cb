"""SHOW METRICS: what jobs, their tasks and operators have counted, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.client.results.result import Result, rows_result
from penstock.client.statements.jobs import find_job
from penstock.client.statements.name_patterns import matches
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.catalog.errors import Span
    from penstock.client.execution.session_state import SessionState
    from penstock.engine.job.metric_registry import Metric


def show_metrics(state: SessionState, node: nodes.ShowMetrics) -> Result:
    """Return one row per metric, or per percentile of a latency."""
    metrics = read_metrics(state, node.job_id, node.like, node.job_span)
    columns = {
        "job": pa.array([metric.job for metric in metrics], pa.string()),
        "operator": pa.array([metric.operator or None for metric in metrics], pa.string()),
        "id": pa.array([metric.operator_id or None for metric in metrics], pa.string()),
        "subtask": pa.array([metric.subtask for metric in metrics], pa.int32()),
        "metric": pa.array([_display_name(metric) for metric in metrics], pa.string()),
        "value": pa.array([metric.value for metric in metrics], pa.int64()),
        "unit": pa.array([metric.unit or None for metric in metrics], pa.string()),
    }
    return rows_result(pa.table(columns))


def read_metrics(
    state: SessionState, job_id: str | None = None, like: str | None = None, span: Span | None = None
) -> list[Metric]:
    """Return the metrics of one job, or of all, whose names match. CLI-6030 when there is no such job."""
    from penstock.engine.job.metric_registry import metrics_of  # what a job counts: not before somebody asks

    jobs = state.jobs.all() if job_id is None else [find_job(state, job_id, span)]
    return [
        metric
        for job in jobs
        for metric in metrics_of(job.job_id, job.metrics())
        if matches(metric.name, like)
    ]


def _display_name(metric: Metric) -> str:
    if not metric.quantile:
        return metric.name
    word = {"0.5": "p50", "0.95": "p95", "0.99": "p99", "1": "max"}.get(metric.quantile, metric.quantile)
    return f"{metric.name}.{word} from {metric.source}"
