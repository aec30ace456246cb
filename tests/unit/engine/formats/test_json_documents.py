"""JSON in arrays and over several lines: what is read is what json.loads reads, whatever the pieces."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.json_documents import DocumentLines
from penstock.engine.formats.registry import READERS

FIELDS = (Field("n", BIGINT), Field("s", STRING))
TEXTS = ["", 'a"b', "\\", "],[", "{", "}\\", "é,\n", "\u2028 x"]


def written(rng: random.Random, rows: list[dict[str, Any]], style: str) -> str:
    """Return rows as a writer of JSON has them."""
    indent = rng.choice([None, 2])
    one = [json.dumps(row, indent=indent, ensure_ascii=rng.random() < 0.5) for row in rows]
    if style == "array":
        gap = rng.choice(["", " ", "\n", "\r\n  "])
        return f"{gap}[{gap}{(gap + ',' + gap).join(one)}{gap}]{gap}"
    return rng.choice(["\n", "\r\n", " ", "\n\n"]).join(one)


@pytest.mark.parametrize("style", ["array", "objects"])
def test_lines_are_the_records_whatever_the_pieces(style: str) -> None:
    rng = random.Random(style)
    for _ in range(60):
        rows = [
            {"n": i, "s": rng.choice(TEXTS), "deep": [{"x": rng.choice(TEXTS)}] * rng.randrange(3)}
            for i in range(rng.randrange(5))
        ]
        data = written(rng, rows, style).encode()
        lines, made, at = DocumentLines(), b"", 0
        while at < len(data):
            size = rng.randrange(1, 12)
            made += lines.lines_of(data[at : at + size])
            at += size
        assert len(made) == len(data)
        assert [json.loads(line) for line in made.split(b"\n") if line.strip()] == rows


@pytest.mark.parametrize(
    "text",
    [
        '[{"n": 1},]',
        "[{}, ]",
        "[{}, , {}]",
        "[,{}]",
        "[{}]]",
        '{"n": 1',
        "{}}",
        "[[1]]",
        '["a',
        '[{"s": "a\nb"}]',
    ],
)
def test_what_is_no_json_is_none_after_it(text: str) -> None:
    records = [line for line in DocumentLines().lines_of(text.encode()).split(b"\n") if line]
    assert not all(_is_object(record) for record in records)


def _is_object(record: bytes) -> bool:
    try:
        return isinstance(json.loads(record), dict)
    except ValueError:
        return False


def read(path: Path, anchor: dict[str, Any] | None = None) -> list[Any]:
    compression = "gzip" if path.suffix == ".gz" else None
    task = FileTask(pafs.LocalFileSystem(), str(path), FIELDS, FIELDS, compression, documents=True)
    reader = READERS["json"](task, anchor)
    blocks = []
    while (decoded := reader.next()) is not None:
        blocks.append(decoded)
    reader.close()
    return blocks


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_large_array_is_read_in_blocks_and_resumed(tmp_path: Path, name: str) -> None:
    rows = [{"n": i, "s": "]}," + str(i) + "\\"} for i in range(60_000)]
    data = json.dumps(rows, indent=1).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    blocks = read(tmp_path / name)
    assert len(blocks) > 1
    assert [row for block in blocks for row in block.rows.to_pylist()] == rows
    # it has no middle to begin at: it is read again from its start, and rows keep their numbers
    again = read(tmp_path / name, blocks[1].anchor)
    assert [block.first for block in again] == [block.first for block in blocks]


def test_a_bad_record_has_its_number_and_its_place(tmp_path: Path) -> None:
    text = '[\n {"n": 1},\n {"n": "x"},\n 7,\n {"n": 2}\n]'
    (tmp_path / "a.json").write_text(text)
    (block,) = read(tmp_path / "a.json")
    assert block.rows.column("n").to_pylist() == [1, 2]
    first, second = block.bad
    assert (first.ordinal, first.column, text[first.byte :].lstrip()[:10]) == (1, "n", '{"n": "x"}')
    assert (second.ordinal, second.error) == (2, "a number is where a record must contain one object")
