"""Metrics as Prometheus reads them: its text exposition format, version 0.0.4.

What it buys: one dependency less. It is imported in 1 ms where the engine is loaded; ``import
prometheus_client`` takes 45 ms of processor time and would still need a collector for names and units.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from penstock.engine.job.metric_registry import Metric, MetricKind, declaration

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UNIT_WORDS = {
    "ms": ("seconds", 1e-3),
    "us": ("seconds", 1e-6),
    "bytes": ("bytes", 1.0),
    "permille": ("ratio", 1e-3),
    "ms/s": ("ratio", 1e-3),
}


def exposition(metrics: Iterable[Metric]) -> str:
    """Return the text: all samples of a metric together under its HELP and TYPE."""
    groups: dict[str, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault(prometheus_name(metric), []).append(metric)
    return "".join(f"{line}\n" for name, group in groups.items() for line in _family(name, group))


def prometheus_name(metric: Metric) -> str:
    """Return ``penstock_<scope>_<name>`` with the base unit it is given in, and ``_total`` for counters,
    as is the custom.
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", metric.name).lower()
    words = re.sub(r"_ms(_per_second)?$", "", re.sub(r"[^a-z0-9_]", "_", words))
    unit = _UNIT_WORDS.get(declaration(metric.name).unit, ("", 1.0))[0]
    suffix = f"_{unit}" if unit and not words.endswith(unit) and f"_{unit}_" not in f"_{words}_" else ""
    return f"penstock_{metric.scope}_{words}{suffix}{'_total' if metric.kind is MetricKind.COUNTER else ''}"


def _family(name: str, metrics: list[Metric]) -> Iterator[str]:
    first = metrics[0]
    yield f"# HELP {name} {_escaped_help(declaration(first.name).help)}"
    yield f"# TYPE {name} {first.kind}"
    for metric in metrics:
        suffix = f"_{metric.quantile}" if metric.quantile in ("count", "sum") else ""
        yield f"{name}{suffix}{{{_labels(metric)}}} {_value(metric)}"


def _labels(metric: Metric) -> str:
    labels = {"job": metric.job}
    if metric.subtask is not None:
        labels |= {
            "operator": metric.operator,
            "operator_id": metric.operator_id,
            "subtask": str(metric.subtask),
        }
    if metric.source:
        labels["source"] = metric.source
    if metric.quantile and metric.quantile not in ("count", "sum"):
        labels["quantile"] = metric.quantile
    return ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())


def _value(metric: Metric) -> str:
    factor = _UNIT_WORDS.get(metric.unit, ("", 1.0))[1]
    return str(metric.value) if factor == 1.0 else repr(round(metric.value * factor, 6))


def _escaped(text: str) -> str:
    """Return a label's value as the format wants it: backslash, quote and line feed are escaped."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
