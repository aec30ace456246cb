"""Figures of splits: rows, rows a second and lag of the first 200; all others, and those that ended, as a sum."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from penstock.engine.job.job_metrics import JobMetrics, operator_reports
from penstock.engine.job.metric_registry import MetricScope, metrics_of
from penstock.engine.metrics.operator_metrics import (
    OTHER_SPLITS,
    SPLITS_SHOWN,
    OperatorMetrics,
    SplitProgress,
    SplitReads,
)
from penstock.engine.metrics.task_metrics import OperatorFigures, TaskFigures
from penstock.engine.operators.source.split_meter import SplitMeter


def split(name: str, rows: int, lag: int | None = None) -> Any:
    reader = SimpleNamespace() if lag is None else SimpleNamespace(lag=lambda: lag)
    return SimpleNamespace(split_id=name, rows=rows, reader=reader)


def test_rows_a_second_and_lag_are_measured_once_a_second() -> None:
    metrics = OperatorMetrics()
    meter = SplitMeter(metrics, 0.0)
    first, other = split("a", 0, 90), split("b", 0)
    meter.measure(0.0, [first, other])
    first.rows = 50
    meter.measure(999.0, [first, other])
    assert metrics.reads == {"a": SplitReads(0, 0, 90), "b": SplitReads(0, 0)}
    meter.measure(2000.0, [first, other])
    assert metrics.reads == {"a": SplitReads(50, 25, 90), "b": SplitReads(0, 0)}
    meter.end(first)
    assert metrics.reads == {"b": SplitReads(0, 0), OTHER_SPLITS: SplitReads(50, 0)}


def test_many_splits_are_a_sum() -> None:
    metrics = OperatorMetrics()
    meter = SplitMeter(metrics, 0.0)
    splits = [split(f"s{number}", 3, 2) for number in range(SPLITS_SHOWN + 10)]
    meter.measure(0.0, splits)
    assert len(metrics.reads) == SPLITS_SHOWN + 1
    assert metrics.reads[OTHER_SPLITS] == SplitReads(30, 0, 20)


def figures(count: int) -> TaskFigures:
    splits = {f"s{n:03}": SplitProgress(n, n * 1000, idle=n % 2 == 1) for n in range(count)}
    reads = {"s000": SplitReads(7, 3, 1), OTHER_SPLITS: SplitReads(1, 0, None)}
    operators = (
        OperatorFigures("o", "source t", reads=reads),
        OperatorFigures("w", "watermark ts", splits=splits),
    )
    return TaskFigures(0, 0, "running", True, operators)


def test_the_registry_names_splits_and_is_bounded() -> None:
    numbers = JobMetrics(tasks=(figures(SPLITS_SHOWN + 4),))
    found = [metric for metric in metrics_of("j", numbers) if metric.scope is MetricScope.SPLIT]
    assert len({metric.split for metric in found}) == SPLITS_SHOWN + 1
    by_name = {(metric.name, metric.split): metric.value for metric in found}
    assert by_name["pendingRecords", "s000"] == 1 and by_name["recordsRead", "s000"] == 7
    assert ("pendingRecords", OTHER_SPLITS) not in by_name
    assert by_name["splitWatermark", "s003"] == 3 and by_name["splitIdle", "s003"] == 1
    assert by_name["splitWatermark", OTHER_SPLITS] == SPLITS_SHOWN and by_name["splitIdle", OTHER_SPLITS] == 2
    assert {metric.subtask for metric in found} == {0}


def test_subtasks_are_merged_and_figures_survive_json() -> None:
    source, _ = operator_reports([figures(1), figures(1)])
    assert source.reads == {"s000": SplitReads(14, 6, 2), OTHER_SPLITS: SplitReads(2, 0, None)}
    assert source.lag == 2
    assert TaskFigures.from_json(figures(3).to_json()) == figures(3)
