"""Every element comes back from the wire as it was; what is not an element is refused without a crash."""

from __future__ import annotations

import decimal
import random
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from penstock.engine.network import frame_kinds as kinds
from penstock.engine.network.element_codec import ElementDecoder, ElementEncoder, pieces_that_fit
from penstock.engine.network.frames import FrameReader, FrameWriter, NetworkFrame
from tests.harness.length import examples

TYPES: list[tuple[pa.DataType, st.SearchStrategy]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.decimal128(10, 2), st.integers(-(10**9), 10**9).map(lambda n: decimal.Decimal(n) / 100)),
    (pa.string(), st.text(max_size=8)),
    (pa.large_string(), st.text(max_size=8)),
    (pa.binary(), st.binary(max_size=8)),
    (pa.date32(), st.integers(-1000, 1000)),
    (pa.timestamp("us"), st.integers(-(2**40), 2**40)),
    (
        pa.timestamp("us", tz="UTC"),
        st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2100, 1, 1)).map(
            lambda t: t.replace(tzinfo=UTC)
        ),
    ),
    (pa.duration("us"), st.integers(-1000, 1000)),
    (pa.list_(pa.int32()), st.lists(st.integers(-5, 5), max_size=3)),
    (
        pa.map_(pa.string(), pa.int64()),
        st.lists(st.tuples(st.text(max_size=3), st.integers(-5, 5)), max_size=3),
    ),
    (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.integers(-5, 5), "b": st.text(max_size=3)}),
    ),
    (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["x", "y", "z"])),
    (pa.list_(pa.dictionary(pa.int8(), pa.string())), st.lists(st.sampled_from(["x", "y"]), max_size=2)),
    (pa.null(), st.none()),
]


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    count = draw(st.integers(0, 20))
    columns = []
    for kind, values in draw(st.lists(st.sampled_from(TYPES), max_size=4)):
        columns.append(pa.array(draw(st.lists(st.none() | values, min_size=count, max_size=count)), kind))
    schema = pa.schema(
        [pa.field(f"c{n}", column.type, metadata={"n": str(n)}) for n, column in enumerate(columns)],
        metadata={"k": "v"},
    )
    rows = pa.RecordBatch.from_arrays(columns, schema=schema)
    numbers = st.none() | st.lists(
        st.integers(-(2**63), 2**63 - 1), min_size=rows.num_rows, max_size=rows.num_rows
    ).map(lambda n: np.array(n, np.int64))
    batch = Batch(rows, draw(numbers), draw(numbers), draw(st.integers(-(2**63), 2**63 - 1)))
    start = draw(st.integers(0, rows.num_rows))
    return batch.slice(start, draw(st.integers(0, rows.num_rows - start)))


ELEMENTS = (
    batches()
    | st.builds(Watermark, st.integers(-(2**63), 2**63 - 1))
    | st.builds(
        Barrier,
        st.integers(0, 2**62),
        st.booleans(),
        st.sampled_from([float("inf"), float("-inf"), 0.0, 12.5]),
    )
    | st.just(Idle())
    | st.builds(LatencyMarker, st.text(max_size=40), st.floats(allow_nan=False, allow_infinity=False))
    | st.just(EndOfInput())
)


def same(one: Element, other: Element) -> bool:
    if not isinstance(one, Batch) or not isinstance(other, Batch):
        return one == other
    assert one.rows.schema.equals(other.rows.schema, check_metadata=True)
    for mine, theirs in ((one.weights, other.weights), (one.behind, other.behind)):
        assert (mine is None) == (theirs is None)
        assert mine is None or (theirs.dtype == np.int64 and np.array_equal(mine, theirs))
    return (one.rows.to_pydict().__repr__(), one.origin, one.num_rows) == (
        other.rows.to_pydict().__repr__(),
        other.origin,
        other.num_rows,
    )


def payloads(encoder: ElementEncoder, element: Element, now_ms: float = 0.0) -> list[tuple[int, bytes]]:
    return [
        (kind, b"".join(bytes(part) for part in parts)) for kind, parts in encoder.encode(element, now_ms)
    ]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(ELEMENTS, max_size=5))
def test_elements_come_back_as_they_were(elements: list[Element]) -> None:
    encoder, decoder, writer, reader = ElementEncoder(), ElementDecoder(), FrameWriter(), FrameReader()
    found = []
    for element in elements:
        for kind, parts in encoder.encode(element, 0.0):
            found += [
                decoder.decode(frame, 0.0)
                for part in writer.encode(kind, 3, parts)
                for frame in reader.receive(part)
            ]
    found = [element for element in found if element is not None]
    assert len(found) == len(elements)
    assert all(same(one, other) for one, other in zip(elements, found, strict=True))


def test_a_schema_is_sent_once() -> None:
    encoder, rows = ElementEncoder(), pa.record_batch({"a": [1, 2]})
    assert [kind for kind, _ in payloads(encoder, Batch(rows))] == [kinds.SCHEMA, kinds.BATCH]
    assert [kind for kind, _ in payloads(encoder, Batch(rows.slice(1)))] == [kinds.BATCH]
    assert [kind for kind, _ in payloads(encoder, Batch(pa.record_batch({"b": [1]})))] == [
        kinds.SCHEMA,
        kinds.BATCH,
    ]


def test_of_a_barriers_deadline_the_time_left_travels() -> None:
    [(kind, payload)] = payloads(ElementEncoder(), Barrier(7, overtakes_at_ms=150.0), now_ms=100.0)
    assert ElementDecoder().decode(NetworkFrame(kind, 0, 0, memoryview(payload)), 5000.0) == Barrier(
        7, overtakes_at_ms=5050.0
    )


def test_rows_are_not_copied_out_of_the_frame() -> None:
    encoder, decoder, reader, writer = ElementEncoder(), ElementDecoder(), FrameReader(), FrameWriter()
    batch = Batch(pa.record_batch({"a": np.arange(100_000)}), np.arange(100_000))
    wire = b"".join(
        bytes(part) for kind, parts in encoder.encode(batch, 0.0) for part in writer.encode(kind, 0, parts)
    )
    frames = reader.receive(wire)
    element = [decoder.decode(frame, 0.0) for frame in frames][-1]
    assert isinstance(element, Batch) and element.weights is not None
    start = np.frombuffer(frames[-1].payload, np.uint8).__array_interface__["data"][0]
    end = start + len(frames[-1].payload)
    assert start <= element.rows.column(0).buffers()[1].address < end
    assert start <= element.weights.__array_interface__["data"][0] < end


def test_large_batches_are_cut_and_a_row_too_large_is_refused() -> None:
    batch = Batch(pa.record_batch({"a": np.arange(10_000)}), np.arange(10_000), None, 4)
    pieces = pieces_that_fit(batch, 30_000)
    assert len(pieces) > 4 and all(piece.origin == 4 for piece in pieces)
    assert pa.Table.from_batches([piece.rows for piece in pieces])["a"].to_pylist() == list(range(10_000))
    assert np.concatenate([piece.weights for piece in pieces]).tolist() == list(range(10_000))
    with pytest.raises(PenstockError, match="a row of") as caught:
        pieces_that_fit(Batch(pa.record_batch({"a": ["x" * 100_000]})), 30_000)
    assert caught.value.code == "NET-5002"


def refused(decoder: ElementDecoder, kind: int, payload: bytes) -> bool:
    try:
        decoder.decode(NetworkFrame(kind, 0, 0, memoryview(payload)), 0.0)
    except PenstockError as error:
        assert error.code == "NET-5006"
        return True
    return False


def test_bad_offsets_of_strings_are_refused() -> None:
    """The checksum is right: the sender itself is hostile. Offsets that leave the data, or go back, must
    not reach a kernel.
    """
    offsets = np.array([0, 3, 6, 9], np.int32)
    for place, value in ((1, 1_000_000), (2, -5), (1, 8), (3, 2**31 - 1)):
        bad = offsets.copy()
        bad[place] = value
        good = pa.Array.from_buffers(
            pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"abcdefghi")]
        )
        decoder, frames = ElementDecoder(), payloads(ElementEncoder(), Batch(pa.record_batch({"s": good})))
        schema, rows = frames
        assert not refused(decoder, *schema) and not refused(decoder, *rows)
        changed = rows[1].replace(offsets.tobytes(), bad.tobytes())
        assert changed != rows[1] and refused(decoder, kinds.BATCH, changed), (place, value)


def test_payloads_changed_anywhere_are_refused_or_are_other_valid_rows() -> None:
    """None may raise anything but NET-5006, nor crash."""
    chance = random.Random(7)
    rows = pa.record_batch(
        {
            "a": [1, None, 3],
            "s": ["x", "yy", None],
            "l": [[1], [], [2, 3]],
            "d": pa.array(["p", "q", "p"]).dictionary_encode(),
        }
    )
    for source in (
        Batch(rows, np.array([1, 1, -1])),
        Batch(rows.select(["a", "s", "l"]), None, np.array([1, 2, 3])),
    ):
        frames = payloads(ElementEncoder(), source)
        caught = 0
        for _ in range(400):
            decoder, bad = ElementDecoder(), [bytearray(payload) for _, payload in frames]
            target = bad[chance.randrange(len(bad))]
            for _ in range(chance.randint(1, 4)):
                target[chance.randrange(len(target))] = chance.randrange(256)
            caught += any(
                refused(decoder, kind, bytes(payload)) for (kind, _), payload in zip(frames, bad, strict=True)
            )
        assert caught > 40


@pytest.mark.parametrize(
    "kind, payload",
    [
        (kinds.WATERMARK, b"123"),
        (kinds.IDLE, b"x"),
        (kinds.END_OF_INPUT, b"x"),
        (kinds.BARRIER, b"{}"),
        (kinds.BARRIER, b'{"checkpoint_id": true, "then_stop": false, "overtakes_at_ms": 0.0}'),
        (kinds.BARRIER, b'{"checkpoint_id": 1, "then_stop": false, "overtakes_at_ms": NaN}'),
        (kinds.BARRIER, b"[" * 5000),
        (kinds.BATCH, b""),
        (kinds.BATCH, b"\x01" + bytes(15) + b"\xff" * 8 + bytes(60)),
        (kinds.BATCH, bytes(64)),
        (kinds.SCHEMA, b"nonsense"),
        (99, b""),
    ],
)
def test_nonsense_is_refused(kind: int, payload: bytes) -> None:
    assert refused(ElementDecoder(), kind, payload)
