"""The dashboard of Grafana: its queries name metrics and labels that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

from penstock.client.monitoring.prometheus import prometheus_name
from penstock.engine.job.metric_registry import METRICS

DASHBOARD = Path(__file__).resolve().parents[4] / "docs" / "grafana" / "penstock.json"
NAMES = {prometheus_name(metric) for metric in METRICS.values()}  # type: ignore[arg-type]
LABELS = {"job", "operator", "operator_id", "subtask", "split", "source", "quantile"}


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_every_metric_of_the_dashboard_is_there() -> None:
    found = {name for text in expressions() for name in re.findall(r"penstock_\w+", text)}
    assert len(found) > 12
    assert not found - NAMES


def test_every_label_of_the_dashboard_is_there() -> None:
    for text in expressions():
        grouped = ",".join(re.findall(r"by \(([^)]*)\)", text)).replace(" ", "").split(",")
        assert set(filter(None, grouped)) | set(re.findall(r"(\w+)=~?\"", text)) <= LABELS, text


def test_panels_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    cells = [
        (x, y)
        for panel in panels
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in panels}) == len(panels)
