"""Columns in PostgreSQL's two formats, read back by psycopg's loaders, whole and from a slice."""

import datetime as dt
from decimal import Decimal as D

import numpy as np
import psycopg.adapt
import psycopg.pq
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    Array,
    Decimal,
    Map,
    Row,
    to_arrow,
)
from penstock.client.server.postgres import cells
from penstock.client.server.postgres.binary_format import cell_writer, text_writer
from penstock.client.server.postgres.cells import total_bytes
from penstock.client.server.postgres.row_output import PIECE_BYTES, RowEncoder, pieces_of
from penstock.client.server.postgres.wire_types import modifier, wire_type

UTC = dt.UTC
NINES = "9" * 38
VALUES = [
    (BOOLEAN, [True, None, False]),
    (TINYINT, [1, None, -128]),
    (SMALLINT, [1, None, -(2**15)]),
    (INT, [1, None, -(2**31)]),
    (BIGINT, [1, None, -(2**63), 2**63 - 1]),
    (FLOAT, [1.5, None, -0.25]),
    (DOUBLE, [1.5, None, -1e300, 1e-9, float("inf"), 12345678.9]),
    (Decimal(38, 10), [D("1.5"), None, D("-12345678901234567890.0000000001"), D(0), D("100000000")]),
    (Decimal(10, 2), [D("1.50"), None, D("-99999999.99"), D("0.01")]),
    (Decimal(38, 0), [D(NINES), None, D("-" + NINES), D(10000)]),
    (Decimal(38, 38), [D("0." + NINES), None, D("0." + "0" * 37 + "1")]),
    (STRING, ["a", None, "", 'é"\\,{}\n']),
    (BINARY, [b"\x00\xff", None, b""]),
    (DATE, [dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (TIME, [dt.time(1, 2, 3, 400), None, dt.time(0, 0), dt.time(23, 59, 59, 999999)]),
    (TIMESTAMP, [dt.datetime(2024, 1, 1, 1, 2, 3, 4), None, dt.datetime(1999, 1, 1)]),
    (
        TIMESTAMP_LTZ,
        [dt.datetime(2024, 7, 1, 1, 2, 3, tzinfo=UTC), None, dt.datetime(1950, 1, 1, tzinfo=UTC)],
    ),
    (DAY_TIME_INTERVAL, [dt.timedelta(1, 2, 3), None, -dt.timedelta(1, 2, 3), dt.timedelta(0)]),
    (NULL, [None, None]),
    (Array(INT), [[1, None, 2], None, [], [3]]),
    (Array(STRING), [["a", '"\\,{}', None, "NULL"], None, [], [""]]),
    (Array(BINARY), [[b"\x00\xff"], None]),
    (Array(Decimal(10, 2)), [[D("1.50"), None], None]),
    (Array(TIMESTAMP), [[dt.datetime(2024, 1, 1)], None]),
    (Row((("a", INT), ("b", STRING))), [{"a": 1, "b": "x"}, None]),
    (Array(Row((("a", INT),))), [[{"a": 1}], None]),
    (Array(Array(INT)), [[[1], [2, 3]], None]),
]


def read(cells, loader):
    texts = [
        None if length < 0 else cells.data[start : start + length].tobytes()
        for start, length in zip(cells.starts, cells.lengths, strict=True)
    ]
    return [None if text is None else loader.load(text) for text in texts]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_clients_read_what_was_sent(kind, values, zone):
    column = pa.array(values, to_arrow(kind))
    # a slice: offsets into validity, offsets and values
    for part in (column, column.slice(1), column.slice(0, 0)):
        for form, writer in ((psycopg.pq.Format.TEXT, text_writer), (psycopg.pq.Format.BINARY, cell_writer)):
            loader = psycopg.adapt.Transformer().get_loader(wire_type(kind).oid, form)
            assert read(writer(kind, zone)(part), loader) == part.to_pylist(), form


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_a_single_row_has_the_bytes_of_the_same_row_among_others(kind, values):
    column = pa.array(values, to_arrow(kind))
    # the flag of an array that says whether it has NULLs is of its column
    for form in (0,) if isinstance(kind, Array) else (0, 1):
        encoder = RowEncoder(Schema((Field("a", kind),)), (form,), "Europe/Berlin")
        together = encoder.rows(pa.RecordBatch.from_arrays([column], names=["a"]))
        alone = [
            encoder.row(pa.RecordBatch.from_arrays([column.slice(at, 1)], names=["a"]))
            for at in range(len(column))
        ]
        assert b"".join(alone) == total_bytes(together).tobytes(), form


def test_months_are_intervals_of_months():
    column = pa.array([14, None, -14], pa.int32())
    text = text_writer(YEAR_MONTH_INTERVAL, "UTC")(column)
    assert bytes(text.data[: text.lengths[0]]) == b"1 years 2 mons"
    binary = cell_writer(YEAR_MONTH_INTERVAL, "UTC")(column)
    assert bytes(binary.data[32:48]) == bytes(12) + (-14).to_bytes(4, "big", signed=True)


def test_maps_are_json():
    cells = text_writer(Map(STRING, INT), "UTC")(pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())))
    assert bytes(cells.data[: cells.lengths[0]]) == b'{"a":1}'


def test_instants_have_the_offset_of_their_time():
    column = pa.array([0, 1_720_000_000_000_000], pa.timestamp("us", "UTC"))
    cells = text_writer(TIMESTAMP_LTZ, "Europe/Berlin")(column)
    texts = [bytes(cells.data[s : s + n]) for s, n in zip(cells.starts, cells.lengths, strict=True)]
    assert texts == [b"1970-01-01 01:00:00+01", b"2024-07-03 11:46:40+02"]


def test_types_have_the_oids_of_postgresql():
    kinds = [BOOLEAN, TINYINT, BIGINT, STRING, Decimal(10, 2), Array(INT), Map(INT, INT), TIMESTAMP_LTZ]
    assert [wire_type(kind).oid for kind in kinds] == [16, 21, 20, 25, 1700, 1007, 114, 1184]
    # precision and scale, as PostgreSQL packs them
    assert [modifier(kind) for kind in (Decimal(10, 2), BIGINT)] == [(10 << 16 | 2) + 4, -1]


def test_rows_are_messages_one_behind_the_other():
    schema = Schema((Field("a", INT), Field("b", STRING)))
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1, None], pa.int32()), "b": ["x", "yz"]})
    sent = []
    RowEncoder(schema, (1, 0), "UTC").send(batch, sent.append)
    first = b"D" + (4 + 2 + 4 + 4 + 4 + 1).to_bytes(4, "big") + b"\0\2\0\0\0\4\0\0\0\1\0\0\0\1x"
    second = b"D" + (4 + 2 + 4 + 4 + 2).to_bytes(4, "big") + b"\0\2\xff\xff\xff\xff\0\0\0\2yz"
    assert b"".join(sent) == first + second


def test_large_rows_are_encoded_piece_by_piece():
    batch = pa.RecordBatch.from_pydict({"a": ["x" * (1 << 20)] * 10})
    pieces = list(pieces_of(batch))
    assert sum(piece.num_rows for piece in pieces) == 10
    assert max(piece.nbytes for piece in pieces) <= PIECE_BYTES
    # a row larger than a piece is one piece
    assert [
        piece.num_rows for piece in pieces_of(pa.RecordBatch.from_pydict({"a": ["x" * (8 << 20)] * 2}))
    ] == [1, 1]


@pytest.mark.parametrize(("form", "head", "size_at"), [(0, b"", 1), (1, b"", 1), (0, b"\0\1", None)])
@pytest.mark.parametrize("count", [1, 3])
def test_a_row_the_protocol_cannot_count_is_refused(monkeypatch, form, head, size_at, count):
    """Its length would be negative, and its bytes would be read as messages."""
    monkeypatch.setattr(cells, "MOST_BYTES", 100)
    schema = Schema((Field("a", STRING), Field("b", STRING)))
    encoder, sent = RowEncoder(schema, (form,) * 2, "UTC", head, size_at), []
    encoder.send(pa.RecordBatch.from_pydict({"a": ["x" * 40] * count, "b": ["y" * 30] * count}), sent.append)
    assert len(sent) == 1
    with pytest.raises(PenstockError) as refused:
        encoder.send(pa.RecordBatch.from_pydict({"a": ["x" * 40] * count, "b": ["y" * 80] * count}), print)
    assert refused.value.code == "CLI-6268"


def test_digits_of_bytes_the_protocol_cannot_count_are_refused(monkeypatch):
    """Two for each byte: their offsets would be negative."""
    monkeypatch.setattr(cells, "MOST_BYTES", 100)
    assert text_writer(BINARY, "UTC")(pa.array([b"x" * 49])).lengths.tolist() == [100]
    with pytest.raises(PenstockError) as refused:
        text_writer(BINARY, "UTC")(pa.array([b"x" * 51]))
    assert refused.value.code == "CLI-6268"


def test_numerics_agree_with_text_for_random_digits():
    random = np.random.default_rng(5)
    for scale in (0, 1, 3, 4, 7, 18, 37, 38):
        digits = ["".join(map(str, random.integers(0, 10, random.integers(1, 39)))) for _ in range(50)]
        values = [D(f"{'-' if i % 2 else ''}{digits[i]}E-{scale}") for i in range(len(digits))]
        kind = Decimal(38, scale)
        loader = psycopg.adapt.Transformer().get_loader(1700, psycopg.pq.Format.BINARY)
        assert read(cell_writer(kind, "UTC")(pa.array(values, to_arrow(kind))), loader) == values
