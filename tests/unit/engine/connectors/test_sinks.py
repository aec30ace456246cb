"""Print, blackhole and collect: changes with their op, counts, and the hand-over to the client."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.connectors.connector import Connector
from penstock.catalog.connectors.registry import CONNECTORS, check_options, is_secret, metadata_keys, redacted
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import INT, STRING
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyGroups, Services
from penstock.engine.api.print_stream import PrintStream
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import OPS, change_rows
from penstock.engine.connectors.in_process.result_channels import ResultChannel, ResultChannels
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.sink import SinkOperator
from tests.harness.operator_specs import sink_spec
from tests.harness.patience import PATIENCE_S
from tests.harness.reading import Taken, table_of

COLUMNS = {"k": INT, "v": STRING}


def changes(*rows: tuple[int | None, str | None, int]) -> Batch:
    keys, values, weights = zip(*rows, strict=True)
    return Batch(
        pa.record_batch({"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.string())}),
        np.array(weights),
    )


def sink(
    table: CatalogTable | None,
    services: Services,
    *,
    key: tuple[int, ...] | None = None,
    subtask: int = 0,
    parallelism: int = 1,
) -> SinkOperator:
    schema = table_of(COLUMNS, {}).schema
    operator = SinkOperator(sink_spec("op", "sink", schema, table, key, False), JobOptions())
    operator.open(
        Context(
            "op", "sink", subtask, parallelism, KeyGroups(0, 1, 1), ManualClock(), OperatorMetrics(), services
        )
    )
    return operator


def test_change_rows_pair_updates_of_a_key() -> None:
    batch = changes((1, "new", 1), (2, "gone", -1), (1, "old", -1), (3, "x", 2), (None, "n", 1))
    rows, ops = change_rows(batch, (0,))
    assert list(zip(np.array(OPS)[ops], rows.column(1).to_pylist(), strict=True)) == [
        ("-U", "old"),
        ("+U", "new"),
        ("-D", "gone"),
        ("+I", "x"),
        ("+I", "x"),
        ("+I", "n"),
    ]
    assert [OPS[op] for op in change_rows(batch, None)[1]] == ["+I", "-D", "-D", "+I", "+I", "+I"]


def test_print() -> None:
    lines: list[str] = []
    services = Services(PrintStream(lines.append))
    table = table_of(COLUMNS, {"connector": "print", "print-identifier": "out"})
    operator = sink(table, services, key=(0,))
    operator.on_batch(changes((1, "a", -1), (1, None, 1)), 0, Taken())
    assert "".join(lines) == "out> -U[1, a]\nout> +U[1, NULL]\n"
    lines.clear()
    sink(table_of(COLUMNS, {"connector": "print"}), services, subtask=1, parallelism=2).on_batch(
        Batch(changes((1, "a", 1)).rows), 0, Taken()
    )
    assert lines == ["2> +I[1, a]\n"]


def test_print_without_a_stream_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    sink(table_of(COLUMNS, {"connector": "print"}), Services()).on_batch(changes((7, "x", 1)), 0, Taken())
    assert capsys.readouterr().out == "+I[7, x]\n"


def test_blackhole_counts() -> None:
    operator = sink(table_of(COLUMNS, {"connector": "blackhole"}), Services())
    operator.on_batch(changes((1, "a", 1), (2, "b", -1)), 0, Taken())
    operator.before_barrier(1, Taken())
    assert operator._context.metrics.counters == {"rows_forgotten": 2}
    assert operator.snapshot_items() == []


def test_collect_waits_for_the_client_and_ends() -> None:
    channels = ResultChannels()
    operators = [sink(None, Services(channels), subtask=s, parallelism=2) for s in range(2)]
    channel = channels.channel("op")
    for _ in range(64):
        assert operators[0].ready()
        operators[0].on_batch(changes((1, "a", 1)), 0, Taken())
    assert not operators[0].ready()
    assert channel.next(0) is not None and operators[0].ready()
    operators[0].on_end(Taken())
    assert not channel.ended
    operators[1].on_end(Taken())
    while channel.next(0) is not None:
        pass
    assert channel.ended


def test_result_channel_between_threads() -> None:
    channel = ResultChannel(4)

    def produce() -> None:
        for i in range(20):
            channel.offer(changes((i, "x", 1)))
        channel.finish(PenstockError("RUN-2900", "the job failed"))

    thread = threading.Thread(target=produce)
    thread.start()
    got = []
    with pytest.raises(PenstockError, match="the job failed"):
        while (batch := channel.next(PATIENCE_S)) is not None:
            got.append(batch.rows.column(0)[0].as_py())
    thread.join()
    assert got == list(range(20)) and channel.ended


def test_a_closed_channel_never_holds_up_the_job() -> None:
    channel = ResultChannel(1)
    assert channel.next(0) is None and not channel.ended
    channel.offer(changes((1, "a", 1)))
    assert channel.full
    channel.close()
    assert not channel.full and channel.ended and not channel.offer(changes((1, "a", 1)))


SPAN = Span(3, 9)


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        ({}, "SQL-1501", "filesystem"),
        ({"connector": "filesystm"}, "SQL-1502", 'did you mean "filesystem"?'),
        ({"connector": "collect"}, "SQL-1502", "datagen"),
        ({"connector": "filesystem", "pth": "x"}, "SQL-1503", 'did you mean "path"?'),
        ({"connector": "blackhole", "x": "1"}, "SQL-1503", "takes no options"),
        ({"connector": "datagen", "fields.id.lenght": "1"}, "SQL-1503", 'did you mean "fields.id.length"?'),
        ({"connector": "filesystem", "format": "csv"}, "SQL-1504", "path"),
        ({"connector": "filesystem", "path": "data"}, "SQL-1504", "format"),
        (
            {"connector": "filesystem", "path": "a.csv", "on-error": "skipp"},
            "SQL-1505",
            'did you mean "skip"?',
        ),
        ({"connector": "datagen", "rows-per-second": "-1"}, "SQL-1505", "the least is 0"),
        ({"connector": "filesystem", "path": "a.csv", "csv.header": "yes"}, "SQL-1505", "'true' or 'false'"),
        ({"connector": "filesystem", "path": "a.csv", "csv.quote": "''"}, "SQL-1505", "one character"),
        (
            {"connector": "filesystem", "path": "a.csv", "source.monitor-interval": "5 secnds"},
            "SQL-1506",
            "seconds",
        ),
        ({"connector": "filesystem", "path": "a.csv", "source.monitor-interval": "5"}, "SQL-1506", "'5 s'"),
        ({"connector": "filesystem", "path": "a.csv", "sink.rolling.bytes": "1 gbb"}, "SQL-1506", "gb"),
        ({"connector": "filesystem", "path": "a.parquet", "csv.header": "true"}, "SQL-1507", "leave it out"),
        ({"connector": "filesystem", "path": "a.csv", "csv.quote": ","}, "SQL-1507", None),
        (
            {
                "connector": "filesystem",
                "path": "a.csv",
                "source.monitor-interval": "1 s",
                "source.replay": "true",
            },
            "SQL-1507",
            "keep one",
        ),
    ],
)
def test_options_that_cannot_work(options: dict[str, str], code: str, hint: str | None) -> None:
    with pytest.raises(PenstockError, match=code) as caught:
        check_options(options, dict.fromkeys(options, SPAN))
    assert caught.value.span == SPAN or not options
    assert hint is None or hint in str(caught.value.hint)


def test_options_that_work() -> None:
    check_options(
        {
            "connector": "Filesystem".lower(),
            "path": "a.csv.gz",
            "csv.delimiter": "\\t",
            "csv.null-literal": "NA",
        },
        {},
    )
    check_options({"connector": "datagen", "fields.a.b.kind": "random", "fields.id.step": "1 s"}, {})


def test_secrets_are_never_shown() -> None:
    shown = redacted(
        {
            "connector": "filesystem",
            "path": "s3://user:hunter2@host/x?secret_key=abc&a=1",
            "auth.password": "p",
            "csv.header": "true",
        }
    )
    assert shown == {
        "connector": "filesystem",
        "path": "s3://******@host/x?secret_key=******&a=1",
        "auth.password": "******",
        "csv.header": "true",
    }
    assert is_secret("kafka", "sasl.jaas.config") and not is_secret("filesystem", "path")


def test_every_connector_has_a_builder() -> None:
    from penstock.engine.connectors.registry import SINKS, SOURCES

    def names(promise: str) -> set[str]:
        return {c.name for c in CONNECTORS.values() if getattr(c, promise)}

    databases = {"duckdb", "postgres", "sqlite"}  # read by the bounded backends, as Spark's own tables are
    bounded = {"spark", "shared"}  # and so is a part that several readers of a plan have in common
    assert names("source") == set(SOURCES) | databases | bounded
    own = {"materialized", "spark"}  # whose sinks are no writers: one keeps state, the other is Spark's
    assert names("sink") - own == set(SINKS) - own
    assert all(
        isinstance(c, Connector) and c.help and all(o.help or o.key == "table" for o in c.options)
        for c in CONNECTORS.values()
    )
    assert metadata_keys("filesystem") and metadata_keys("print") == {}
