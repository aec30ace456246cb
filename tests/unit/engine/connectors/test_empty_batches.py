"""Batches of no rows, and batches whose changes cancel out: every sink writes nothing for them, every
operator goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import INT, STRING
from penstock.client.session import Session
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyGroups, Services
from penstock.engine.api.print_stream import PrintStream
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.epoch_sink import EpochSink
from penstock.engine.connectors.in_process.result_channels import ResultChannels
from penstock.engine.connectors.registry import SINKS
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.sink import SinkOperator
from tests.harness.operator_specs import sink_spec
from tests.harness.reading import Taken, read, table_of
from tests.streaming.databases.places import Place

COLUMNS = {"k": INT, "v": STRING}
APPENDING = ["csv", "json", "parquet", "arrow"]
FORMATS = [*APPENDING, "debezium-json"]


def rows(*changes: tuple[int, str, int]) -> Batch:
    keys, values = (
        pa.array([c[0] for c in changes], pa.int32()),
        pa.array([c[1] for c in changes], pa.string()),
    )
    return Batch(pa.record_batch({"k": keys, "v": values}), np.array([c[2] for c in changes], np.int64))


NOTHING = {
    "no rows": rows(),
    "one row cancelled": rows((1, "a", 1), (1, "a", -1)),
    "two keys cancelled": rows((1, "a", 1), (2, "b", 3), (1, "a", -1), (2, "b", -3)),
    "through another value": rows((1, "a", 1), (1, "a", -1), (1, "b", 1), (1, "b", -1)),
}
SOME = rows((7, "x", 1))


def opened(table: CatalogTable | None, services: Services, key: tuple[int, ...] | None) -> SinkOperator:
    schema = table_of(COLUMNS, {}).schema if table is None else table.schema
    operator = SinkOperator(sink_spec("abcdef0123", "sink", schema, table, key, False), JobOptions())
    operator.open(
        Context(
            "abcdef0123", "sink", 0, 1, KeyGroups(0, 1, 1), ManualClock(), OperatorMetrics(), services, "job1"
        )
    )
    return operator


def through(operator: SinkOperator, batches: list[Batch], first_checkpoint: int = 1) -> None:
    """Write batches, a checkpoint behind each."""
    for number, batch in enumerate(batches, first_checkpoint):
        operator.on_batch(batch, 0, Taken())
        operator.before_barrier(number, Taken())
        operator.on_checkpoint_complete(number)


@pytest.mark.parametrize("partitioned", [False, True], ids=["flat", "partitioned"])
@pytest.mark.parametrize("kind", FORMATS)
def test_files(tmp_path: Path, kind: str, partitioned: bool) -> None:
    options = {"connector": "filesystem", "path": str(tmp_path / "out"), "format": kind}
    table = table_of(COLUMNS, options, partitioned_by=["k"] if partitioned else ())
    operator = opened(table, Services(), (0,) if kind not in APPENDING else None)
    nothing = [NOTHING["no rows"]] if kind in APPENDING else list(NOTHING.values())
    through(operator, nothing)
    assert not list((tmp_path / "out").rglob("part-*"))
    through(operator, [SOME], 100)
    operator.close()
    written = list((tmp_path / "out").rglob("part-*"))
    assert len(written) == 1
    if kind in APPENDING:
        assert [row["v"] for row in read(table)] == ["x"]
    else:
        assert json.loads(written[0].read_text())["after"]["v"] == "x"


@pytest.mark.parametrize("mode", ["upsert", "retract"])
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_files_of_changes_with_their_ops(tmp_path: Path, kind: str, mode: str) -> None:
    options = {
        "connector": "filesystem",
        "path": str(tmp_path / "out"),
        "format": kind,
        "changelog.mode": mode,
    }
    operator = opened(table_of(COLUMNS, options), Services(), (0,))
    through(operator, list(NOTHING.values()))
    assert not list((tmp_path / "out").rglob("part-*"))
    operator.close()


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize("key", [False, True], ids=["no key", "key"])
def test_databases(tmp_path: Path, kind: str, key: bool) -> None:
    place = Place(kind, tmp_path)
    place.run(f"CREATE TABLE out (k INTEGER{' PRIMARY KEY' if key else ''}, v VARCHAR(20))")
    schema = table_of(COLUMNS, {}).schema
    table = CatalogTable(
        "out",
        schema,
        schema,
        {"connector": kind, "table-name": "out", "path": place.path},
        primary_key=("k",) if key else (),
    )
    operator = opened(table, Services(), (0,) if key else None)
    through(operator, list(NOTHING.values()) if key else [NOTHING["no rows"]])
    through(operator, [SOME], 100)
    operator.close()
    assert place.ask("SELECT k, v FROM out") == [(7, "x")]


@pytest.mark.parametrize("key", [None, (0,)], ids=["no key", "key"])
@pytest.mark.parametrize("name", ["print", "blackhole", "collect"])
def test_what_shows_changes(name: str, key: tuple[int, ...] | None) -> None:
    lines: list[str] = []
    services = Services(PrintStream(lines.append), ResultChannels())
    operator = opened(None if name == "collect" else table_of(COLUMNS, {"connector": name}), services, key)
    through(operator, list(NOTHING.values()))
    if name == "print" and key:
        assert "".join(lines) == ""


class Committed:
    """A target that records what is committed to it."""

    def __init__(self, form: StagedForm) -> None:
        self.form, self.epochs = form, list[int]()

    def fence(self, writers: list[EpochWriter]) -> None:
        pass

    def last_committed(self, writer: EpochWriter) -> int:
        return 0

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        self.epochs.append(epoch)

    def retire(self, writer: EpochWriter) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("form", StagedForm)
def test_targets_of_epochs(form: StagedForm, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Committed(form)
    monkeypatch.setitem(SINKS, "blackhole", lambda request: EpochSink(request, target))
    operator = opened(table_of(COLUMNS, {"connector": "blackhole"}), Services(), (0,))
    nothing = [NOTHING["no rows"]] if form is StagedForm.INSERTS else list(NOTHING.values())
    through(operator, [*nothing, SOME])
    operator.close()
    assert target.epochs == [len(nothing) + 1], "an epoch without rows is not committed"


# their tables are on servers: kafka at least once is tried in kafka/test_sink.py, files in a bucket beside theirs
EPOCHS = {"delta", "iceberg", "http", "redis-stream", "kafka", "upsert-kafka", "python", "nats", "mqtt"}


def test_every_sink_is_walked_here() -> None:
    here = {"filesystem", "print", "blackhole", "collect", "postgres", "sqlite", "duckdb"}
    assert set(SINKS) == here | EPOCHS, "try the new one above"


CHANGES = [
    {"before": None, "after": {"a": 1, "b": 1}, "op": "c"},
    {"before": {"a": 1, "b": 1}, "after": {"a": 1, "b": 12}, "op": "u"},
    {"before": None, "after": {"a": 2, "b": 5}, "op": "c"},
    {"before": {"a": 2, "b": 5}, "after": None, "op": "d"},
]
QUERIES = [
    "SELECT a, b FROM s WHERE b < 10",
    "SELECT a, COUNT(*) AS n, MIN(b) AS m FROM s WHERE b < 10 GROUP BY a",
    "SELECT COUNT(*) AS n, SUM(b) AS m FROM (SELECT DISTINCT a, b FROM s WHERE b < 10) AS d",
    "SELECT a, COUNT(DISTINCT b) AS n, ARRAY_AGG(b) AS m FROM s WHERE b < 10 GROUP BY a",
    "SELECT x.a, y.b FROM s AS x JOIN s AS y ON x.a = y.a WHERE x.b < 10",
    "SELECT x.a, y.b FROM (SELECT * FROM s WHERE b < 10) AS x FULL JOIN (SELECT * FROM s WHERE b < 10) AS y ON x.a = y.a",
    "SELECT x.a, y.b FROM s AS x LEFT JOIN (SELECT * FROM s WHERE b < 10) AS y ON x.a = y.a",
    "SELECT a FROM s WHERE b < 10 AND a IN (SELECT a FROM s WHERE b < 10)",
    "SELECT a FROM s WHERE a NOT IN (SELECT a FROM s WHERE b < 10)",
    "SELECT a FROM s WHERE b < 10 UNION SELECT b FROM s WHERE b < 10",
    "SELECT a FROM s EXCEPT SELECT a FROM s WHERE b < 10",
    "SELECT a FROM s WHERE b < 10 INTERSECT SELECT a FROM s",
    "SELECT a, b FROM (SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM s WHERE b < 10) AS t WHERE n = 1",
    "SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY b) AS n FROM s WHERE b < 10",
    "SELECT a, b, LAG(b) OVER (ORDER BY a) AS n FROM s WHERE b < 10",
    "SELECT a, b FROM s WHERE b < 10 ORDER BY b LIMIT 1",
    "SELECT a, u FROM s CROSS JOIN UNNEST(ARRAY[a, b]) AS t (u) WHERE b < 10",
    "SELECT a, b, COUNT(*) AS n FROM s WHERE b < 10 GROUP BY GROUPING SETS ((a), (b), ())",
    "SELECT a, (SELECT MAX(b) FROM s WHERE b < 10) AS m FROM s",
]


@pytest.fixture
def source(tmp_path: Path) -> Callable[[str], Session]:
    """Return a session over the changes: all in one batch, or one at a time."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(
        "".join(json.dumps(change) + "\n" for change in CHANGES), encoding="utf-8"
    )

    def opened(batch_rows: str) -> Session:
        session = Session(
            {
                "table.dml-sync": "true",
                "execution.batch.max-rows": batch_rows,
                "execution.runtime-mode": "streaming",
            }
        )
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/in', 'format' = 'debezium-json', 'source.replay' = 'true'"
        session.execute(f"CREATE TABLE s (a INT, b INT, PRIMARY KEY (a) NOT ENFORCED) WITH ({options})")
        return session

    return opened


@pytest.mark.parametrize("query", QUERIES)
def test_operators(source: Callable[[str], Session], query: str) -> None:
    whole, single = (
        sorted(map(repr, source(size).execute(query).final_rows().to_pylist())) for size in ("1000", "1")
    )
    assert whole == single


def test_an_insert_of_changes_that_cancel_out_writes_nothing(
    source: Callable[[str], Session], tmp_path: Path
) -> None:
    session = source("1000")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'debezium-json'"
    session.execute(f"CREATE TABLE o (a INT, b INT, PRIMARY KEY (a) NOT ENFORCED) WITH ({options})")
    session.execute("INSERT INTO o SELECT a, b FROM s WHERE b < 10")
    assert not list((tmp_path / "out").glob("part-*"))
