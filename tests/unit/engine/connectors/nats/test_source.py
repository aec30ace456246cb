"""Reading streams of a real server: start, end, subjects, metadata, restore, messages that are gone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import penstock
from penstock.catalog.connectors.nats import can_overlap
from penstock.catalog.connectors.registry import check_options
from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.nats import consumer
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.nats_server import NatsProcess, nats_server
from tests.harness.patience import PATIENCE_S, await_that
from tests.unit.engine.connectors.nats.streams import add, opened, rest, source, taken

pytestmark = pytest.mark.xdist_group("nats")
BOUNDED = {"scan.bounded.mode": "latest"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsProcess]:
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture
def stream(server: NatsProcess, request: pytest.FixtureRequest) -> str:
    name = request.node.name.partition("[")[0]
    server.create(name, f"{name}.>")
    return str(name)


def test_a_query_over_a_stream_with_metadata(server: NatsProcess, stream: str) -> None:
    server.publish(f"{stream}.a", b'{"n": 1}', headers={"Kind": "first"})
    add(server, f"{stream}.b", 2)
    with penstock.connect() as connection:
        connection.execute(f"""CREATE TABLE t (n INT, subject STRING METADATA, sequence BIGINT METADATA,
            at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', headers MAP<STRING, STRING> METADATA)
            WITH ('connector'='nats','url'='{server.url}','stream'='{stream}','format'='json',
            'scan.bounded.mode'='latest')""")
        rows = connection.execute(
            "SELECT n, subject, sequence, at > TIMESTAMP '2020-01-01 00:00:00', headers['Kind'] FROM t"
        ).fetchall(timeout=PATIENCE_S)
    assert rows == [(1, f"{stream}.a", 1, True, "first"), (2, f"{stream}.b", 2, True, None)]


def test_where_it_begins_and_ends(server: NatsProcess, stream: str) -> None:
    assert rest(opened(server, stream, **BOUNDED)) == []
    add(server, f"{stream}.a", 1, 2, 3)
    assert rest(opened(server, stream, **BOUNDED)) == [1, 2, 3]
    second = {"scan.startup.mode": "sequence", "scan.startup.sequence": "2"}
    assert rest(opened(server, stream, **BOUNDED, **second)) == [2, 3]
    latest = opened(server, stream, **{"scan.startup.mode": "latest"})
    add(server, f"{stream}.a", 4)
    assert taken(latest, 1) == [4]
    latest.close()
    for millis, left in (("0", [1, 2, 3, 4]), ("4000000000000", [])):
        since = {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": millis}
        assert rest(opened(server, stream, **BOUNDED, **since)) == left


def test_a_split_begins_where_it_was_listed(server: NatsProcess, stream: str) -> None:
    add(server, f"{stream}.a", 1)
    latest = source(server, stream, **{"scan.startup.mode": "latest"})
    split = latest.splits()[0]
    add(server, f"{stream}.a", 2)
    reader = latest.open(split, latest.first_position(split))
    assert taken(reader, 1) == [2]
    reader.close()


def test_each_subject_is_a_split(server: NatsProcess, stream: str) -> None:
    for number in range(6):
        add(server, f"{stream}.{'abc'[number % 3]}", number)
    subjects = source(server, stream, **BOUNDED, subject=f"{stream}.a; {stream}.c")
    assert subjects.splits() == [f"{stream}:{stream}.a", f"{stream}:{stream}.c"]
    assert [rest(subjects.open(split, None)) for split in subjects.splits()] == [[0, 3], [2, 5]]


def test_a_restored_reader_continues_behind_its_message(server: NatsProcess, stream: str) -> None:
    add(server, f"{stream}.a", *range(10))
    reader = opened(server, stream)
    assert taken(reader, 4, 3) == [0, 1, 2, 3]
    position = json.loads(json.dumps(reader.position()))
    reader.close()
    again = opened(server, stream, position)
    add(server, f"{stream}.a", 10)
    assert taken(again, 7) == [4, 5, 6, 7, 8, 9, 10]
    await_that(lambda: again.lag() == 0)
    again.close()


def test_messages_that_are_gone_are_reported(server: NatsProcess, stream: str) -> None:
    add(server, f"{stream}.a", *range(10))
    reader = opened(server, stream)
    assert taken(reader, 4, 3) == [0, 1, 2, 3]
    position = json.loads(json.dumps(reader.position()))
    reader.close()
    server.ask(f"STREAM.PURGE.{stream}", seq=5)
    resumed = opened(server, stream, position)
    assert taken(resumed, 6) == [4, 5, 6, 7, 8, 9], "only what was read is gone"
    resumed.close()
    server.ask(f"STREAM.PURGE.{stream}", seq=8)
    with pytest.raises(PenstockError, match=r"DAT-5903.*: 3 messages behind sequence 4 are gone"):
        taken(opened(server, stream, position), 1)
    with pytest.raises(PenstockError, match=r"DAT-5903.*up to 3 messages"):
        taken(opened(server, stream, position, subject=f"{stream}.a"), 1)
    counted = OperatorMetrics()
    skipping = opened(server, stream, position, counted, **{"scan.on-trimmed": "skip"})
    assert taken(skipping, 3) == [7, 8, 9] and counted.counters["messages_lost"] == 3
    skipping.close()
    server.ask(f"STREAM.PURGE.{stream}")
    with pytest.raises(PenstockError, match=r"DAT-5903.*6 messages"):
        rest(opened(server, stream, position | {"end": 10}))
    assert rest(opened(server, stream, **BOUNDED)) == [], "who begins has missed nothing"


def test_messages_that_go_while_a_reader_is_behind_are_reported(
    server: NatsProcess, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the reader is ahead of the operator by few requests
    monkeypatch.setattr(consumer, "_MESSAGES", 8)
    add(server, f"{stream}.a", *range(200))
    reader = opened(server, stream)
    assert len(taken(reader, 10)) == 10
    server.ask(f"STREAM.PURGE.{stream}", seq=200)
    with pytest.raises(PenstockError, match=r"DAT-5903.*messages behind sequence"):
        taken(reader, 190)
    reader.close()


def test_messages_of_other_subjects_are_no_loss(server: NatsProcess, stream: str) -> None:
    add(server, f"{stream}.a", 1)
    reader = opened(server, stream, subject=f"{stream}.a")
    assert taken(reader, 1) == [1]
    add(server, f"{stream}.b", *range(10))

    def advanced() -> bool:
        assert reader.poll(10) is None
        return reader.position()["sequence"] == 11

    await_that(advanced)
    position = reader.position()
    reader.close()
    server.ask(f"STREAM.PURGE.{stream}", seq=12)
    again = opened(server, stream, position, subject=f"{stream}.a")
    add(server, f"{stream}.a", 2)
    assert taken(again, 1) == [2]
    again.close()


def test_a_stream_that_cannot_be_read_again_is_refused(server: NatsProcess, stream: str) -> None:
    with pytest.raises(PenstockError, match=r"DAT-5904.*no stream nowhere"):
        opened(server, "nowhere")
    server.create("queue", "queue.>", retention="workqueue")
    with pytest.raises(PenstockError, match=r"DAT-5904.*retention 'workqueue'"):
        opened(server, "queue")
    add(server, f"{stream}.a", 1, 2)
    reader = opened(server, stream)
    assert taken(reader, 2) == [1, 2]
    position = reader.position()
    reader.close()
    server.ask(f"STREAM.DELETE.{stream}")
    server.create(stream, f"{stream}.>")
    add(server, f"{stream}.a", 3)
    with pytest.raises(PenstockError, match=r"DAT-5904.*was made again after sequence 2"):
        opened(server, stream, position)
    again = opened(server, stream, position, **{"scan.on-trimmed": "skip"})
    assert taken(again, 1) == [3]
    again.close()


def test_a_message_that_cannot_be_read(server: NatsProcess, stream: str) -> None:
    server.publish(f"{stream}.a", b'{"n": 1}', b"no json", b'{"n": 3}')
    with pytest.raises(PenstockError, match=r"DAT-4201.*stream .*, sequence 2"):
        rest(opened(server, stream, **BOUNDED))
    assert rest(opened(server, stream, **BOUNDED, **{"on-error": "skip"})) == [1, 3]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"url": "http://x"}, "SQL-1505"),
        ({"stream": "a.b"}, "SQL-1505"),
        ({"subject": "a..b"}, "SQL-1505"),
        ({"subject": "a.*;a.b"}, "SQL-1505"),
        ({"scan.startup.mode": "sequence"}, "SQL-1507"),
        ({"scan.startup.sequence": "3"}, "SQL-1507"),
        ({"scan.startup.mode": "timestamp"}, "SQL-1507"),
        ({"username": "u"}, "SQL-1507"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, str], code: str) -> None:
    written = {"connector": "nats", "url": "nats://x", "stream": "s", "format": "json", **options}
    with pytest.raises(PenstockError, match=code):
        check_options(written, {})


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a.*", "a.b", True),
        ("a.>", "a", False),
        ("a.>", "a.b.c", True),
        ("*.b", "a.*", True),
        ("*.b", "a.c", False),
        (">", "x", True),
    ],
)
def test_subjects_that_overlap(one: str, other: str, overlap: bool) -> None:
    assert can_overlap(one, other) is overlap and can_overlap(other, one) is overlap
