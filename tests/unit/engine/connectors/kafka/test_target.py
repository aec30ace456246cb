"""The Kafka target: an epoch is in the topic once, wherever a process ends, and a stock reader of committed
records sees nothing else.
"""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.api.failpoints import armed
from penstock.engine.connectors.kafka.native_producer import KafkaFailure, committed_offset
from penstock.engine.connectors.kafka.target import KafkaTarget
from tests.harness.kafka_broker import KafkaTopics, new_broker, shared_topics
from tests.harness.kafka_mock import (
    ADD_PARTITIONS,
    END_TRANSACTION,
    INVALID_RECORD,
    INVALID_TXN_STATE,
    PRODUCE,
    TOPIC_AUTHORIZATION_FAILED,
    MockCluster,
)
from tests.unit.engine.connectors.kafka.kafka_sinks import WRITER, declared, request, rows, there

OTHER = EpochWriter("job", "s1", 1)


class Ends(BaseException):
    """The process ends here."""


@pytest.fixture(scope="module")
def topics() -> KafkaTopics:
    return shared_topics()


def target(topics: KafkaTopics, topic: str, *writers: EpochWriter, **options: str) -> KafkaTarget:
    made = KafkaTarget(request(declared(topic, topics.bootstrap, **options)))
    made.fence(list(writers) or [WRITER])
    return made


def end(_name: str) -> None:
    raise Ends


def keys(topics: KafkaTopics, topic: str) -> list[bytes | None]:
    return sorted(value for _, value in there(topics, topic) if value is not None)


def values(*numbers: int) -> list[bytes]:
    return [b'{"k":%d,"v":"v%d"}' % (n, n) for n in numbers]


def test_an_epoch_is_committed_with_its_number(topics: KafkaTopics) -> None:
    topic = topics.create(partitions=2)
    one = target(topics, topic)
    assert one.last_committed(WRITER) == 0
    one.commit(WRITER, 3, [rows(1, 2), rows(3)])
    assert one.last_committed(WRITER) == 3
    one.commit(WRITER, 5, iter([rows(4)]))
    one.close()
    again = target(topics, topic)
    assert again.last_committed(WRITER) == 5
    again.close()
    assert keys(topics, topic) == values(1, 2, 3, 4)
    group = {"bootstrap.servers": topics.bootstrap, "group.id": f"penstock-{WRITER.name}"}
    assert committed_offset(topic, group) == (5, None)


def test_rows_of_the_job_that_this_one_was_copied_from_are_committed_once(topics: KafkaTopics) -> None:
    topic = topics.create()
    original, copy = target(topics, topic), target(topics, topic, OTHER)
    original.commit(WRITER, 1, [rows(1)])
    # the copy's checkpoint has epoch 2 of the original, which has not committed it
    assert copy.last_committed(WRITER) == 1
    copy.commit(WRITER, 2, [rows(2)])
    with pytest.raises(PenstockError, match="STA-3504"):
        original.commit(WRITER, 2, [rows(2)])
    copy.commit(OTHER, 1, [rows(3)])
    assert keys(topics, topic) == values(1, 2, 3)
    original.close()
    copy.close()


@pytest.mark.parametrize(("point", "committed"), [("K1", 1), ("K2", 1), ("K3", 2)])
def test_a_process_that_ends_in_the_middle(topics: KafkaTopics, point: str, committed: int) -> None:
    topic = topics.create()
    one = target(topics, topic)
    one.commit(WRITER, 1, [rows(1)])
    with armed({point: end}), pytest.raises(Ends):
        one.commit(WRITER, 2, [rows(2)])
    # the first one is not closed: its connections may be there for long
    two = target(topics, topic)
    assert two.last_committed(WRITER) == committed
    if committed < 2:
        two.commit(WRITER, 2, [rows(2)])
    assert keys(topics, topic) == values(1, 2)
    two.commit(WRITER, 3, [rows(3)])
    assert keys(topics, topic) == values(1, 2, 3)
    one.close()
    two.close()


@pytest.mark.parametrize("point", ["", "K1", "K2"])
def test_an_earlier_attempt_that_still_runs_is_fenced_off(topics: KafkaTopics, point: str) -> None:
    topic = topics.create()
    one = target(topics, topic)
    later: list[KafkaTarget] = []

    def take_over(_name: str) -> None:
        if later:  # the point is passed by the later attempt, too
            return
        later.append(target(topics, topic))
        later[0].commit(WRITER, 1, [rows(1)])

    if not point:
        take_over("")
    with armed({point: take_over} if point else {}), pytest.raises(PenstockError, match="STA-3504"):
        one.commit(WRITER, 1, [rows(1)])
    with pytest.raises(PenstockError, match="STA-3504"):
        one.last_committed(WRITER)
    assert keys(topics, topic) == values(1)
    one.close()
    later[0].close()


def test_rows_are_there_twice_if_nobody_asks_for_the_epoch(topics: KafkaTopics) -> None:
    """The negative control: a commit without the question before it repeats the rows."""
    topic = topics.create()
    one = target(topics, topic)
    with armed({"K3": end}), pytest.raises(Ends):
        one.commit(WRITER, 1, [rows(1)])
    two = target(topics, topic)
    two.commit(WRITER, 1, [rows(1)])
    assert keys(topics, topic) == values(1, 1)
    one.close()
    two.close()


def test_former_writers_are_fenced_off_and_committed_for(topics: KafkaTopics) -> None:
    topic = topics.create()
    old = target(topics, topic, OTHER)
    new = target(topics, topic, WRITER, OTHER)
    with pytest.raises(PenstockError, match="STA-3504"):
        old.commit(OTHER, 1, [rows(1)])
    new.commit(OTHER, 1, [rows(1)])
    assert (new.last_committed(OTHER), new.last_committed(WRITER)) == (1, 0)
    assert keys(topics, topic) == values(1)
    old.close()
    new.close()


def test_two_jobs_write_to_one_topic(topics: KafkaTopics) -> None:
    topic = topics.create()
    here, elsewhere = EpochWriter("a", "s1", 0), EpochWriter("b", "s1", 0)
    one, two = target(topics, topic, here), target(topics, topic, elsewhere)
    one.commit(here, 1, [rows(1)])
    two.commit(elsewhere, 4, [rows(2)])
    one.commit(here, 2, [rows(3)])
    assert keys(topics, topic) == values(1, 2, 3)
    assert (one.last_committed(here), two.last_committed(elsewhere)) == (2, 4)
    one.close()
    two.close()


def test_refused_rows_abort_the_transaction_and_the_next_one_is_good(topics: KafkaTopics) -> None:
    topic = topics.create()
    one = target(topics, topic, properties_message_max_bytes="1000")
    wide = rows(2).set_column(1, "v", [["x" * 2000]])
    with pytest.raises(PenstockError, match=r"DAT-5153.*may be sent"):
        one.commit(WRITER, 1, [rows(1), wide])
    assert one.last_committed(WRITER) == 0
    one.commit(WRITER, 1, [rows(3)])
    assert keys(topics, topic) == values(3)
    one.close()


def test_a_transaction_the_broker_ended_for_its_time_is_repeated(topics: KafkaTopics) -> None:
    topic, clock = topics.create(), ManualClock()
    one = KafkaTarget(request(declared(topic, topics.bootstrap)), clock)
    one.fence([WRITER])
    others: list[KafkaTarget] = []

    def late(_name: str) -> None:
        clock.now_ms += 61_000
        others.append(target(topics, topic))

    # another producer of its id, and a transaction older than its time-out: the broker's answer is the same
    with armed({"K1": late}), pytest.raises(PenstockError, match=r"DAT-5151.*61 s") as raised:
        one.commit(WRITER, 1, [rows(1)])
    assert raised.value.retriable
    with pytest.raises(PenstockError, match="DAT-5151"):
        one.commit(WRITER, 1, [rows(1)])
    one.close()
    others[0].close()


def test_what_brokers_refuse_has_a_sentence_of_its_own(topics: KafkaTopics) -> None:
    one = target(topics, topics.create())
    producer = one._producers[WRITER]
    said = {
        name: one._error(producer, KafkaFailure(name, "text")).code
        for name in (
            "INVALID_TRANSACTION_TIMEOUT",
            "MSG_SIZE_TOO_LARGE",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            "GROUP_AUTHORIZATION_FAILED",
            "TOPIC_AUTHORIZATION_FAILED",
            "INVALID_PRODUCER_EPOCH",
            "_MSG_TIMED_OUT",
        )
    }
    assert list(said.values()) == [
        "DAT-5152",
        "DAT-5153",
        "DAT-5104",
        "DAT-5104",
        "DAT-5104",
        "STA-3504",
        "DAT-5102",
    ]
    one.close()


@pytest.mark.parametrize(
    ("request_kind", "answer", "code", "is_retriable"),
    [
        # the abort succeeds: nothing is written, and the epoch is committed again
        (PRODUCE, INVALID_TXN_STATE, "DAT-5107", True),
        # fatal: a new producer asks
        (END_TRANSACTION, INVALID_TXN_STATE, "DAT-5151", True),
        # the same rows are refused in each transaction
        (PRODUCE, INVALID_RECORD, "DAT-5107", False),
        # the records only say that they were dropped
        (ADD_PARTITIONS, TOPIC_AUTHORIZATION_FAILED, "DAT-5104", False),
    ],
)
def test_a_transaction_that_brokers_refuse(
    request_kind: int, answer: int, code: str, is_retriable: bool
) -> None:
    mock = MockCluster()
    mock.create("t")
    one = KafkaTarget(request(declared("t", mock.bootstrap)))
    one.fence([WRITER])
    mock.refuse_requests(request_kind, answer)
    with pytest.raises(PenstockError) as refused:
        one.commit(WRITER, 1, [rows(1)])
    assert (refused.value.code, refused.value.retriable) == (code, is_retriable)
    one.close()
    mock.close()


def test_a_broker_that_is_killed_has_what_it_has_written_to_its_disk() -> None:
    """The broker of the tests answers before it writes: cards that kill it wait for its disk."""
    broker = new_broker()
    topics = KafkaTopics(broker.bootstrap)
    topic = topics.create()
    one = target(topics, topic)
    one.commit(WRITER, 1, [rows(1)])
    one.close()
    broker.await_disk()
    broker.kill()
    broker.start()
    two = target(topics, topic)
    assert two.last_committed(WRITER) == 1
    assert keys(topics, topic) == values(1)
    two.close()
    broker.kill()


@pytest.mark.parametrize("point", ["K1", "K2"])
def test_a_transaction_whose_broker_was_away_is_committed_again(point: str) -> None:
    """The broker of the tests forgets open transactions when it restarts, and says yes to their end."""
    broker = new_broker()
    topics = KafkaTopics(broker.bootstrap)
    topic = topics.create()
    one = target(topics, topic)
    one.commit(WRITER, 1, [rows(1)])

    def restart(_name: str) -> None:
        broker.stop()
        broker.start()

    with armed({point: restart}), pytest.raises(PenstockError, match="DAT-5151") as raised:
        one.commit(WRITER, 2, [rows(2)])
    assert raised.value.retriable
    assert one.last_committed(WRITER) == 1
    one.commit(WRITER, 2, [rows(2)])
    assert one.last_committed(WRITER) == 2
    assert keys(topics, topic) == values(1, 2)
    one.close()
    broker.kill()
