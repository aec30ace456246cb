"""Links without sockets: two state machines and a seeded driver that cuts, delays and breaks the bytes
between them.
"""

from __future__ import annotations

import random
from collections import deque

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.stream_elements import (
    Barrier,
    Batch,
    Element,
    EndOfInput,
    Idle,
    LatencyMarker,
    Watermark,
)
from penstock.engine.exchange.channel import no_wakeup
from penstock.engine.network import frame_kinds as kinds
from penstock.engine.network.credited_channel import CreditedChannel
from penstock.engine.network.frames import FrameWriter
from penstock.engine.network.handshake import Identity
from penstock.engine.network.link import Link, LinkLimits
from penstock.engine.network.remote_channel import RemoteChannel

MINE = Identity("a", "job", 3, 1, "secret")
THEIRS = Identity("b", "job", 3, 1, "secret")
LIMITS = LinkLimits(max_payload=2**20)


class Host:
    def __init__(self) -> None:
        self.channels: dict[str, CreditedChannel] = {}

    def admit(self, peer: str) -> bool:
        return True

    def claim(self, key: str) -> CreditedChannel | None:
        return self.channels.get(key)


class Pair:
    """Two links, bytes on the way in each direction."""

    def __init__(self, mine: Identity = MINE, theirs: Identity = THEIRS, *, checksum: bool = True) -> None:
        self.now_ms = 0.0
        self.hosts = (Host(), Host())
        self.links = (
            Link(mine, self.hosts[0], LIMITS, 0.0, expected=theirs.name, checksum=checksum),
            Link(theirs, self.hosts[1], LIMITS, 0.0, checksum=checksum),
        )
        self.wires = (bytearray(), bytearray())
        self.credits: deque[CreditedChannel] = deque()

    def sender(self, side: int, key: str) -> RemoteChannel:
        link = self.links[side]
        channel = RemoteChannel(key, "peer", no_wakeup, link.schedule, LIMITS.max_payload)
        link.add(channel)
        return channel

    def receiver(self, side: int, key: str, capacity: int) -> CreditedChannel:
        channel = CreditedChannel(capacity, no_wakeup, self.credits.append)
        if not self.links[side].attach(key, channel):
            self.hosts[side].channels[key] = channel
        return channel

    def send(self, side: int) -> None:
        buffers = self.links[side].pull(self.now_ms)
        while buffers:
            self.wires[side].extend(buffers.popleft())

    def deliver(self, side: int, count: int) -> None:
        """Move so many of the bytes that ``side`` has sent."""
        wire, link = self.wires[side], self.links[1 - side]
        while count and wire:
            free = link.writable()
            size = min(count, len(free), len(wire))
            free[:size] = wire[:size]
            del wire[:size]
            count -= size
            link.received(size, self.now_ms)

    def grant_credit(self) -> None:
        while self.credits:
            link, incoming = self.credits.popleft().source
            link.grant_credit(incoming)

    def settle(self) -> None:
        for _ in range(200):
            self.grant_credit()
            for side in (0, 1):
                self.send(side)
                self.deliver(side, 2**30)


def rows(*values: int) -> Batch:
    return Batch(pa.record_batch({"v": pa.array(values, pa.int64())}))


def plain(element: Element) -> object:
    return tuple(element.rows.column(0).to_pylist()) if isinstance(element, Batch) else element


def drain(channel: CreditedChannel) -> list[object]:
    return [plain(channel.take()) for _ in range(len(channel))]


@pytest.mark.parametrize("seed", range(12))
def test_every_channel_gives_every_element_in_order(seed: int) -> None:
    """Eight channels both ways, late receivers, slow consumers, bytes in crumbs: nothing is lost, and no
    channel holds more than it may.
    """
    chance = random.Random(seed)
    pair = Pair()
    keys = [(chance.randint(0, 1), f"k{n}", chance.randint(1, 5)) for n in range(8)]
    senders = {key: pair.sender(side, key) for side, key, _ in keys}
    receivers: dict[str, CreditedChannel] = {}
    sent: dict[str, list[object]] = {key: [] for key in senders}
    found: dict[str, list[object]] = {key: [] for key in senders}
    for step in range(3000):
        side, key, capacity = keys[chance.randrange(8)]
        match chance.randrange(6):
            case 0 if not senders[key].full and len(sent[key]) < 40:
                element = chance.choice(
                    [rows(*range(chance.randint(0, 30))), Watermark(step), Barrier(step), rows(step)]
                )
                sent[key].append(plain(element))
                senders[key].put(element)
            case 1:
                if key not in receivers:
                    receivers[key] = pair.receiver(1 - side, key, capacity)
                elif len(receivers[key]):
                    found[key].append(plain(receivers[key].take()))
            case 2:
                pair.grant_credit()
            case 3:
                pair.send(chance.randint(0, 1))
            case _:
                pair.deliver(chance.randint(0, 1), chance.randint(1, 400))
        assert all(
            len(channel) <= capacity
            for _, key, capacity in keys
            if (channel := receivers.get(key)) is not None
        )
    for side, key, capacity in keys:
        if key not in receivers:
            receivers[key] = pair.receiver(1 - side, key, capacity)
        senders[key].put(EndOfInput())
        sent[key].append(EndOfInput())
    for _ in range(60):
        pair.settle()
        for key, channel in receivers.items():
            found[key] += drain(channel)
        if found == sent:
            break
    assert found == sent
    for side in (0, 1):
        pair.links[side].leave()
        pair.settle()
        pair.links[1 - side].stream_ended()


def test_every_kind_of_element_crosses_a_link() -> None:
    pair = Pair()
    sender, receiver = pair.sender(0, "k"), pair.receiver(1, "k", 8)
    pair.settle()
    elements = [rows(1), Watermark(2), Idle(), LatencyMarker("Source", 3.5), Barrier(1), EndOfInput()]
    for element in elements:
        sender.put(element)
    pair.settle()
    assert drain(receiver) == [plain(element) for element in elements]


def test_a_full_channel_does_not_hold_up_another() -> None:
    pair = Pair()
    slow, quick = pair.sender(0, "slow"), pair.sender(0, "quick")
    receivers = pair.receiver(1, "slow", 2), pair.receiver(1, "quick", 2)
    pair.settle()
    for n in range(30):
        slow.put(rows(n))  # far more than there is credit for
    for n in range(30):
        quick.put(rows(n))
        pair.settle()
        assert drain(receivers[1]) == [(n,)]
    assert slow.full and slow.credit == -28 and len(receivers[0]) == 2


def test_a_producer_is_woken_when_it_gets_credit() -> None:
    pair, woken = Pair(), []
    channel = RemoteChannel("k", "b", lambda: woken.append(1), pair.links[0].schedule, 2**20)
    pair.links[0].add(channel)
    assert channel.full and channel.credit == 0
    pair.settle()
    assert not woken
    receiver = pair.receiver(1, "k", 4)
    pair.settle()
    assert woken == [1] and channel.credit == 4
    for n in range(4):
        channel.put(Watermark(n))
    pair.settle()
    assert channel.full and woken == [1]
    receiver.take()
    pair.settle()
    assert channel.full  # half the capacity is given back at a time
    receiver.take()
    pair.settle()
    assert channel.credit == 2 and woken == [1, 1]


def test_a_barrier_overtakes_what_was_not_sent_and_needs_no_credit() -> None:
    pair = Pair()
    sender, receiver = pair.sender(0, "k"), pair.receiver(1, "k", 2)
    pair.settle()
    for n in range(5):
        sender.put(rows(n))
    pair.settle()
    assert [plain(element) for element in sender.overtake(Barrier(1))] == [(2,), (3,), (4,)]
    assert sender.has_buffered(Barrier(1))
    pair.settle()
    assert (
        not sender.has_buffered(Barrier(1))
        and receiver.announced is not None
        and receiver.announced.checkpoint_id == 1
    )
    found = []
    for _ in range(6):
        found += drain(receiver)
        pair.settle()
    assert found == [(0,), (1,), Barrier(1), (2,), (3,), (4,)]


def test_a_barrier_that_needs_no_credit_waits_until_its_consumer_is_there() -> None:
    pair = Pair()
    sender = pair.sender(0, "k")
    sender.put(rows(0))
    assert [plain(element) for element in sender.overtake(Barrier(1))] == [(0,)]
    pair.settle()
    assert sender.has_buffered(Barrier(1))
    receiver = pair.receiver(1, "k", 2)
    pair.settle()
    assert drain(receiver) == [Barrier(1), (0,)]


def test_a_barrier_that_waits_is_moved_and_one_that_has_gone_is_not_sent_again() -> None:
    pair = Pair()
    sender, receiver = pair.sender(0, "k"), pair.receiver(1, "k", 1)
    pair.settle()
    for element in (rows(0), rows(1), Barrier(1), rows(2)):
        sender.put(element)
    pair.settle()
    assert sender.has_buffered(Barrier(1))
    # (2,) came after it in any case
    assert [plain(element) for element in sender.overtake(Barrier(1))] == [(1,)]
    pair.settle()
    assert sender.overtake(Barrier(1)) == []
    assert sender.overtake(Barrier(2)) and sender.has_buffered(Barrier(2))
    assert sender.overtake(Barrier(2)) == []
    found = []
    for _ in range(8):
        found += drain(receiver)
        pair.settle()
    assert found == [(0,), Barrier(1), Barrier(2), (1,), (2,)]


def test_what_is_put_back_gives_no_credit() -> None:
    pair = Pair()
    sender, receiver = pair.sender(0, "k"), pair.receiver(1, "k", 2)
    receiver.put_back([rows(8), rows(9)])
    pair.settle()
    assert sender.credit == 2
    assert [plain(receiver.take()), plain(receiver.take())] == [(8,), (9,)]
    pair.settle()
    assert sender.credit == 2


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"token": "Secret"}, "NET-5007"),
        ({"token": ""}, "NET-5007"),
        ({"job_id": "other"}, "NET-5008"),
        ({"epoch": 2}, "NET-5008"),
        ({"epoch": 4}, "NET-5008"),
        ({"attempt": 0}, "NET-5008"),
        ({"name": "b"}, "NET-5011"),
    ],
)
def test_who_does_not_belong_is_refused_and_told_so(changes: dict[str, object], code: str) -> None:
    pair = Pair(
        Identity(**{"name": "a", "job_id": "job", "epoch": 3, "attempt": 1, "token": "secret", **changes})
    )  # type: ignore[arg-type]
    pair.send(0)
    with pytest.raises(PenstockError) as caught:
        pair.deliver(0, 2**30)
    assert caught.value.code == code
    assert "secret" not in str(caught.value).lower()
    pair.links[1].refuse(caught.value)
    pair.send(1)
    with pytest.raises(PenstockError, match="refused") as told:
        pair.deliver(1, 2**30)
    assert told.value.code == code
    assert "secret" not in repr(MINE)


def test_silence_is_noticed_and_a_quiet_peer_is_not_silent() -> None:
    pair = Pair()
    pair.settle()
    for _ in range(100):
        pair.now_ms += 500.0
        for side in (0, 1):
            pair.links[side].check_time(pair.now_ms)
            pair.send(side)
            pair.deliver(side, 2**30)
    pair.now_ms += LIMITS.silence_ms
    with pytest.raises(PenstockError) as caught:
        pair.links[0].check_time(pair.now_ms)
    assert caught.value.code == "NET-5009"
    fresh = Pair()
    with pytest.raises(PenstockError, match="did not say within 5 s who"):
        fresh.links[1].check_time(LIMITS.hello_ms)


def test_what_may_be_sent_goes_before_the_goodbye() -> None:
    pair = Pair()
    sender, receiver = pair.sender(0, "k"), pair.receiver(1, "k", 30)
    pair.settle()
    for n in range(20):
        sender.put(rows(*range(n, 8000)))  # more than one pull takes
    sender.put(EndOfInput())
    pair.links[0].leave()
    pair.settle()
    pair.links[1].stream_ended()
    assert len(receiver) == 21 and sender.ended


def test_leaving_while_a_channel_is_open_is_a_loss() -> None:
    pair = Pair()
    pair.sender(0, "k")
    pair.receiver(1, "k", 2)
    pair.settle()
    pair.links[1].leave()
    pair.settle()
    with pytest.raises(PenstockError, match="left before") as caught:
        pair.links[0].stream_ended()
    assert caught.value.code == "NET-5014"
    with pytest.raises(PenstockError, match="broke"):
        pair.links[1].stream_ended()


@pytest.mark.parametrize(
    "kind, channel, payload, flags, code",
    [
        (kinds.BATCH, 7, b"", 0, "NET-5011"),  # no such channel
        (kinds.WATERMARK, 1, bytes(8), 0, "NET-5011"),  # nobody takes from it yet
        (kinds.WATERMARK, 0, bytes(8), kinds.OVERTAKES, "NET-5011"),
        (kinds.WATERMARK, 0, bytes(7), 0, "NET-5006"),
        (kinds.OPEN, 0, b"again", 0, "NET-5011"),
        (kinds.OPEN, 9, b"\xff\xfe", 0, "NET-5006"),
        (kinds.OPEN, 9, b"k" * 600, 0, "NET-5011"),
        (kinds.CREDIT, 5, bytes(4), 0, "NET-5011"),
        (kinds.HELLO, 0, b"{}", 0, "NET-5011"),
        (kinds.FIRST_CONTROL, 0, b"", 0, "NET-5011"),
    ],
)
def test_a_peer_that_breaks_the_rules_is_told_apart(
    kind: int, channel: int, payload: bytes, flags: int, code: str
) -> None:
    host, writer = Host(), FrameWriter()
    link = Link(THEIRS, host, LIMITS, 0.0)
    host.channels["k"] = CreditedChannel(1, no_wakeup, lambda channel: None)

    def send(*arguments: object, **options: object) -> None:
        for part in writer.encode(*arguments, **options):  # type: ignore[arg-type]
            link.writable()[: len(part)] = part
            link.received(len(part), 0.0)

    send(kinds.HELLO, 0, [MINE.to_bytes()])
    send(kinds.OPEN, 0, [b"k"])
    send(kinds.OPEN, 1, [b"later"])
    with pytest.raises(PenstockError) as caught:
        send(kind, channel, [payload], flags)
    assert caught.value.code == code


def test_sending_without_credit_is_noticed() -> None:
    host, writer = Host(), FrameWriter()
    link = Link(THEIRS, host, LIMITS, 0.0)
    host.channels["k"] = CreditedChannel(1, no_wakeup, lambda channel: None)
    frames = [
        (kinds.HELLO, MINE.to_bytes()),
        (kinds.OPEN, b"k"),
        (kinds.WATERMARK, bytes(8)),
        (kinds.WATERMARK, bytes(8)),
    ]
    with pytest.raises(PenstockError) as caught:
        for kind, payload in frames:
            for part in writer.encode(kind, 0, [payload]):
                link.writable()[: len(part)] = part
                link.received(len(part), 0.0)
    assert caught.value.code == "NET-5010"
    assert len(host.channels["k"]) == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_changed_byte_ends_the_link_and_what_came_before_it_is_right(seed: int) -> None:
    chance = random.Random(seed)
    pair = Pair()
    sender, receiver = pair.sender(0, "k"), pair.receiver(1, "k", 50)
    pair.settle()
    for n in range(40):
        sender.put(rows(n, n))
    pair.send(0)
    pair.wires[0][chance.randrange(len(pair.wires[0]))] ^= 1 << chance.randrange(8)
    with pytest.raises(PenstockError) as caught:
        pair.deliver(0, 2**30)
        pair.links[1].stream_ended()
    assert caught.value.code in ("NET-5001", "NET-5002", "NET-5003", "NET-5004", "NET-5005")
    found = drain(receiver)
    assert found == [(n, n) for n in range(len(found))]


MEBIBYTE = 2**20


def wide(number: int) -> Batch:
    """Nearly one MiB in a row."""
    return Batch(
        pa.record_batch({"v": pa.array([number.to_bytes(4, "big") * (MEBIBYTE // 4 - 8192)], pa.binary())})
    )


@pytest.mark.parametrize("most_bytes", [4 * MEBIBYTE, 1 << 40], ids=["bounded", "control"])
def test_wide_rows_are_bounded_by_bytes_at_both_ends(most_bytes: int) -> None:
    """Of 100 MiB for a slow consumer each end holds what it may and a batch; without the bound it holds
    all there is credit for.
    """
    pair = Pair()
    sender = RemoteChannel("k", "peer", no_wakeup, pair.links[0].schedule, LIMITS.max_payload, most_bytes)
    pair.links[0].add(sender)
    receiver = CreditedChannel(64, no_wakeup, pair.credits.append, most_bytes)
    pair.hosts[1].channels["k"] = receiver
    pair.settle()
    found, put, most_sent, most_received = [], 0, 0, 0
    while len(found) < 100:
        while put < 100 and not sender.full:
            sender.put(wide(put))
            put += 1
        pair.settle()
        most_sent, most_received = max(most_sent, sender.size_bytes), max(most_received, receiver.size_bytes)
        assert len(receiver), "credit has run dry"
        found.append(int.from_bytes(receiver.take().rows.column(0)[0].as_py()[:4], "big"))
    assert found == list(range(100)) and receiver.size_bytes == sender.size_bytes == 0
    if most_bytes > 100 * MEBIBYTE:
        assert most_received > 30 * MEBIBYTE
    else:
        assert max(most_sent, most_received) <= most_bytes + MEBIBYTE


def test_a_producer_held_up_by_bytes_is_woken_when_they_have_gone() -> None:
    pair, woken = Pair(), []
    sender = RemoteChannel(
        "k", "peer", lambda: woken.append(1), pair.links[0].schedule, LIMITS.max_payload, MEBIBYTE
    )
    pair.links[0].add(sender)
    receiver = CreditedChannel(64, no_wakeup, pair.credits.append, MEBIBYTE)
    pair.hosts[1].channels["k"] = receiver
    pair.settle()
    for n in range(4):
        sender.put(wide(n))
    pair.settle()
    woken.clear()
    assert sender.full and len(receiver) == 2  # one within the bytes, and one that went over
    receiver.take()
    receiver.take()
    pair.settle()
    assert not sender.full and woken and len(receiver) == 2


def test_bytes_beyond_the_credit_are_refused() -> None:
    pair = Pair()
    sender, receiver = pair.sender(0, "k"), CreditedChannel(64, no_wakeup, pair.credits.append, MEBIBYTE)
    pair.hosts[1].channels["k"] = receiver
    pair.settle()
    sender._granted_bytes = 1 << 40
    for n in range(4):
        sender.put(wide(n))
    with pytest.raises(PenstockError, match="credit"):
        pair.settle()
