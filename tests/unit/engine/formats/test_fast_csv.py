"""Our own kernels read plain CSV exactly as Arrow's reader does, and leave to it whatever is not plain."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, INT, STRING, TIMESTAMP
from penstock.engine.formats import fast_csv
from penstock.engine.formats.csv import CsvParser
from penstock.engine.formats.file_task import CsvDialect, FileTask

FIELDS = (Field("n", BIGINT), Field("s", STRING), Field("i", INT), Field("ts", TIMESTAMP), Field("t", STRING))
GOOD = (
    ("0", "-0", "007", "-1", "123456789012345678", "-999999999999999999", "", "NA"),
    ("", "NA", "x", "longer than eight", "ünï", " blank ", "-", "a'b;c"),
    ("2147483647", "-2147483648", "5", "", "NA"),
    (
        "2020-02-29 23:59:59",
        "1969-12-31T00:00:00.123",
        "2400-02-29 01:02:03.000001",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59.999999",
        "",
        "NA",
    ),
    ("", "end", "NA", "x" * 40),
)
ODD = (
    ("1.5", "+7", " 3", "1234567890123456789", "9223372036854775808", "0x1F", "١", "--1", "-"),
    ('"quoted"', '"com,ma"', "carriage\r"),
    ("2147483648", "-2147483649"),
    (
        "2020-02-30 00:00:00",
        "2020-13-01 00:00:00",
        "2020-01-01",
        "2020-01-01 24:00:00",
        "2020-01-01 00:00:00.1",
        "2020-01-01 00:00:00Z",
        "never",
    ),
    ("one,more",),
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_csv, "_WORTH_BYTES", 0)


def parser(wanted: tuple[Field, ...] = FIELDS) -> CsvParser:
    dialect = CsvDialect(header=False, null_literal="NA")
    return CsvParser(FileTask(pafs.LocalFileSystem(), "none", wanted, FIELDS, dialect=dialect))


def records(rng: np.random.Generator, count: int, odd: bool) -> bytes:
    lines = [[str(rng.choice(np.array(texts, object))) for texts in GOOD] for _ in range(count)]
    if odd:
        column = int(rng.integers(len(ODD)))
        lines[int(rng.integers(count))][column] = str(rng.choice(np.array(ODD[column], object)))
    text = "\n".join(",".join(line) for line in lines)
    return (text + "\n" * int(rng.integers(2))).encode()


@pytest.mark.parametrize("seed", range(40))
def test_plain_blocks_are_read_as_arrow_reads_them(seed: int) -> None:
    rng = np.random.Generator(np.random.PCG64(seed))
    data = records(rng, int(rng.integers(1, 40)), odd=False)
    mine = parser().plain(data)
    assert mine is not None
    mine.validate(full=True)
    assert mine.equals(parser().parse(data))
    picked = tuple(FIELDS[index] for index in rng.permutation(len(FIELDS))[:2])
    assert parser(picked).plain(data).equals(parser(picked).parse(data))


@pytest.mark.parametrize("seed", range(40))
def test_whatever_else_is_left_to_arrow(seed: int) -> None:
    rng = np.random.Generator(np.random.PCG64(1_000 + seed))
    data = records(rng, int(rng.integers(1, 40)), odd=True)
    mine = parser().plain(data)
    assert mine is None or mine.equals(parser().parse(data))


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"1,a,2,2020-01-01 00:00:00,x\n\n", b"1,a,2\n", b"1,\xff,2,2020-01-01 00:00:00,x\n"]
)
def test_blank_lines_missing_values_and_bad_text_are_not_plain(data: bytes) -> None:
    assert parser().plain(data) is None


def test_the_kernels_wait_for_a_block_worth_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_csv, "_WORTH_BYTES", 10)
    monkeypatch.delitem(sys.modules, "penstock.engine.kernels.csv_fields", raising=False)
    reader, data = parser(), b"1,a,2,2020-01-01 00:00:00,x\n"
    assert reader.plain(data) is None
    assert isinstance(reader.plain(data), pa.RecordBatch)
    assert isinstance(parser().plain(data), pa.RecordBatch), "once loaded, they are there for every reader"


@pytest.mark.parametrize("length", [1, 20, 70])
def test_records_of_another_width_are_not_plain_wherever_they_are(length: int) -> None:
    lines = [f"{n},{'x' * (n * 7 % length)},2,2020-01-01 00:00:00,y" for n in range(60)]
    good = ("\n".join(lines) + "\n").encode()
    assert parser().plain(good).equals(parser().parse(good))
    for at in range(59):
        # one value fewer, one more, both, a blank line, an end of a line that is missing or too early
        first, second = lines[at].split(","), lines[at + 1].split(",")
        for pair in [
            [",".join(first[:-1]), lines[at + 1]],
            [lines[at], lines[at + 1] + ","],
            [",".join(first[:-1]), ",".join([*second, "z"])],
            [lines[at], "", lines[at + 1]],
            [lines[at] + "," + lines[at + 1]],
            ["\n".join(first), ",".join(second)],
        ]:
            data = "\n".join([*lines[:at], *pair, *lines[at + 2 :]]).encode()
            assert parser().plain(data) is None, (at, pair)
            assert parser().plain(data + b"\n") is None, (at, pair)
