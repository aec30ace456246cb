"""SHOW METRICS and the Prometheus endpoint: the numbers are those of the registry, and its text is what
Prometheus reads.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.monitoring.prometheus import MetricsServer, exposition
from penstock.client.session import Session
from penstock.engine.job.metric_registry import METRICS, Metric, MetricKind, MetricScope
from penstock.engine.metrics.task_metrics import TaskFigures
from penstock.repl.launch.arguments import run_parser
from tests.harness.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[4]
SAMPLE = re.compile(
    r'^[a-z_]+\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\} -?\d+(?:\.\d+)?(?:e-?\d+)?$'
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "table.dml-sync": "true"})
    for statement in (
        "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1000')",
        "CREATE TABLE hole (k BIGINT, c BIGINT) WITH ('connector' = 'blackhole')",
        "SET 'parallelism.default' = '2'",
        "INSERT INTO hole SELECT n % 10, COUNT(*) FROM numbers GROUP BY n % 10",
    ):
        session.execute(statement)
    yield session
    session.close()


def shown(session: Session, statement: str) -> list[dict[str, object]]:
    return [row for batch in session.execute(statement).batches() for row in batch.to_pylist()]


def test_rows_are_the_registrys(session: Session) -> None:
    job = session.jobs()[0]
    rows = shown(session, f"SHOW METRICS FOR JOB '{job.job_id}' LIKE 'numRecordsOut'")
    assert sum(int(str(row["value"])) for row in rows if row["operator"] == "source numbers") == 1000
    assert {row["metric"] for row in rows} == {"numRecordsOut"}
    assert {row["subtask"] for row in rows} == {0, 1}
    everything = shown(session, "SHOW METRICS")
    assert {row["job"] for row in everything} == {job.job_id}
    names = {str(row["metric"]) for row in everything}
    assert {
        "busyTimeMsPerSecond",
        "numRestarts",
        "inPoolUsage",
        "numStateEntries",
        "rowsForgotten",
        "numBytesOut",
    } <= names
    assert sum(int(str(row["value"])) for row in everything if row["metric"] == "numBytesOut") > 0


def test_a_job_that_is_not_there(session: Session) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute("SHOW METRICS FOR JOB 'nobody'")
    assert refused.value.code == "CLI-6030"


def test_figures_survive_json(session: Session) -> None:
    for task in session.jobs()[0].metrics().tasks:
        assert TaskFigures.from_json(json.loads(json.dumps(task.to_json()))) == task


def test_prometheus_reads_the_page(session: Session) -> None:
    server = MetricsServer(session.jobs, 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=PATIENCE_S) as answer:
            kind, text = answer.headers["Content-Type"], answer.read().decode()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/", timeout=PATIENCE_S)
        refused.value.close()
    finally:
        server.close()
    assert refused.value.code == 404
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    lines = text.splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(SAMPLE.match(line) for line in samples), [line for line in samples if not SAMPLE.match(line)]
    assert len({line.rpartition(" ")[0] for line in samples}) == len(samples)
    told = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert len(told) == len(set(told))
    assert {
        "penstock_operator_num_records_in_total",
        "penstock_task_busy_time_ratio",
        "penstock_job_uptime_seconds",
    } <= set(told)
    for line in samples:
        assert line.partition("{")[0] in told


def test_labels_are_escaped() -> None:
    metric = Metric(
        "numRecordsIn",
        'a "job"',
        "back\\slash\nline",
        "id",
        0,
        7,
        "rows",
        MetricKind.COUNTER,
        MetricScope.OPERATOR,
    )
    assert exposition([metric]).splitlines()[2] == (
        'penstock_operator_num_records_in_total{job="a \\"job\\"",operator="back\\\\slash\\nline",operator_id="id",subtask="0"} 7.0'
    )


def test_the_setting_opens_and_closes_the_port() -> None:
    session = Session()
    probe = MetricsServer(session.jobs, 0)
    port = probe.port
    with pytest.raises(PenstockError) as taken:
        session.execute(f"SET 'metrics.prometheus.port' = '{port}'")
    assert taken.value.code == "CLI-6031"
    assert not session.settings.is_set("metrics.prometheus.port")
    probe.close()
    session.execute(f"SET 'metrics.prometheus.port' = '{port}'")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        assert answer.read() == b""
    session.execute("RESET 'metrics.prometheus.port'")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S)
    session.close()


@pytest.mark.parametrize("port", ["0.0.0.0:9249", "0", "70000", "here"])
def test_ports_that_are_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_parser().parse_words(["a.sql", "--metrics-port", port])
    told = capsys.readouterr().err
    assert ("127.0.0.1 only" if ":" in port else "not a port") in told


def test_the_page_lists_every_metric() -> None:
    page = (ROOT / "docs" / "METRICS.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w/]*) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(metric.name, str(metric.kind), metric.unit, metric.help) for metric in METRICS.values()]
