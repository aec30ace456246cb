"""Frames: cut anywhere they come out whole and in order; anything else is told by its own code before
memory is spent on it.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.errors import PenstockError
from penstock.engine.network.frames import HEADER_BYTES, FrameReader, FrameWriter
from tests.harness.length import examples

MESSAGES = st.lists(
    st.tuples(st.integers(1, 255), st.integers(0, 2**32 - 1), st.binary(max_size=300), st.integers(0, 255)),
    max_size=12,
)


def wire(messages: list[tuple[int, int, bytes, int]]) -> bytes:
    writer = FrameWriter()
    return b"".join(
        bytes(part)
        for kind, channel, body, flags in messages
        for part in writer.encode(kind, channel, [body[:7], body[7:]], flags)
    )


def code_of(data: bytes, **options: object) -> str:
    with pytest.raises(PenstockError) as caught:
        FrameReader(**options).receive(data)  # type: ignore[arg-type]
    return caught.value.code


@settings(max_examples=examples(60), deadline=None)
@given(MESSAGES, st.lists(st.integers(1, 90), min_size=1))
def test_frames_come_out_as_they_went_in_wherever_the_stream_is_cut(
    messages: list[tuple[int, int, bytes, int]], cuts: list[int]
) -> None:
    data, reader, frames, turn = wire(messages), FrameReader(), [], 0
    while data:
        size, turn = cuts[turn % len(cuts)], turn + 1
        frames += reader.receive(data[:size])
        data = data[size:]
    assert [(frame.kind, frame.channel, bytes(frame.payload), frame.flags) for frame in frames] == messages
    reader.end()


def test_a_large_payload_is_received_in_place() -> None:
    body = bytes(range(256)) * 4096
    data = memoryview(wire([(9, 1, b"x", 0), (9, 1, body, 0), (9, 2, b"y", 0)]))
    reader, frames = FrameReader(), []
    while data:
        free = reader.writable()[: len(data)]
        free[:] = data[: len(free)]
        frames += reader.received(len(free))
        data = data[len(free) :]
    assert [bytes(frame.payload) for frame in frames] == [b"x", body, b"y"]


@pytest.mark.parametrize(
    "start, told",
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"SSH-2.0-OpenSSH", "SSH"),
        (b"\x00", "begins with 00"),
    ],
)
def test_other_programs_are_told_apart_from_the_first_byte(start: bytes, told: str) -> None:
    with pytest.raises(PenstockError, match=told) as caught:
        FrameReader().receive(start)
    assert caught.value.code == "NET-5001"


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_random_bytes_give_an_error_or_nothing(data: bytes) -> None:
    try:
        assert FrameReader().receive(data) == []
    except PenstockError as error:
        assert error.code.startswith("NET-500")


def test_a_length_is_refused_before_there_is_memory_for_it() -> None:
    whole = bytearray(wire([(9, 0, b"abc", 0)]))
    struct.pack_into("<I", whole, 16, 2**32 - 1)
    assert code_of(bytes(whole[:HEADER_BYTES])) == "NET-5002"
    assert code_of(wire([(9, 0, b"abcd", 0)]), max_payload=3) == "NET-5002"


def test_a_changed_length_is_told_before_so_much_has_come() -> None:
    whole = bytearray(wire([(9, 0, b"abc", 0)]))
    struct.pack_into("<I", whole, 16, 2**20)
    assert code_of(bytes(whole[:HEADER_BYTES])) == "NET-5003"


def test_every_changed_byte_is_noticed() -> None:
    good = wire([(9, 5, b"some rows", 1)])
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= 0x20
        try:
            reader = FrameReader(max_payload=1000)
            assert reader.receive(bytes(bad)) == []
            with pytest.raises(PenstockError):
                reader.end()
        except PenstockError as error:
            assert error.code in ("NET-5001", "NET-5002", "NET-5003", "NET-5004")


def test_without_the_checksum_a_changed_byte_gets_through() -> None:
    bad = bytearray(wire([(9, 5, b"some rows", 1)]))
    bad[-1] ^= 0x20
    assert code_of(bytes(bad)) == "NET-5003"
    assert bytes(FrameReader(checksum=False).receive(bytes(bad))[0].payload) == b"some rowS"


def test_a_frame_that_is_missing_or_twice_is_noticed() -> None:
    writer = FrameWriter()
    first, second, third = (b"".join(bytes(part) for part in writer.encode(9, 0, [b"x"])) for _ in range(3))
    assert code_of(first + third) == "NET-5004"
    assert code_of(first + second + second) == "NET-5004"


def test_a_stream_that_ends_inside_a_frame_is_cut() -> None:
    reader = FrameReader()
    reader.receive(wire([(9, 0, b"abcdef", 0)])[:-1])
    with pytest.raises(PenstockError) as caught:
        reader.end()
    assert caught.value.code == "NET-5005"
