"""Mapped columns by name and by id against deltalake's own reading: nested ones, partitions, names that are given
again.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, BOOLEAN, STRING, Array, DataType, Map, Row
from penstock.engine.connectors.delta.source import DeltaSource
from penstock.planner.expressions.nodes import Call, Column, Literal
from tests.unit.engine.connectors.delta.delta_files import (
    declared,
    deltalake,
    read_from,
    request,
    with_options,
)
from tests.unit.engine.connectors.delta.foreign_tables import add_version, foreign

PERSON = Row((("name", STRING), ("age", BIGINT)))
COLUMNS: dict[str, DataType] = {
    "k": BIGINT,
    "p": STRING,
    "who": PERSON,
    "all": Array(PERSON),
    "by": Map(STRING, PERSON),
}
STREAM = {"scan.mode": "from-version", "scan.version": "0"}


def mapped(name: str, kind: Any, number: int, physical: str | None = None) -> dict[str, Any]:
    """A column of the log."""
    metadata = {
        "delta.columnMapping.id": number,
        "delta.columnMapping.physicalName": physical or f"c{number}",
    }
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def person(first: int) -> dict[str, Any]:
    return {"type": "struct", "fields": [mapped("name", "string", first), mapped("age", "long", first + 1)]}


def schema() -> list[tuple[str, Any, dict[str, Any]]]:
    fields = [
        # the physical name of one is the name of another
        mapped("k", "long", 1, "p"),
        mapped("p", "string", 2),
        mapped("who", person(10), 3),
        mapped("all", {"type": "array", "elementType": person(20), "containsNull": True}, 4),
        mapped(
            "by", {"type": "map", "keyType": "string", "valueType": person(30), "valueContainsNull": True}, 5
        ),
    ]
    return [(field["name"], field["type"], field["metadata"]) for field in fields]


def rows() -> pa.Table:
    """Rows by the names of the table."""
    one, two = {"name": "Ann", "age": 30}, {"name": "Bob", "age": None}
    struct = pa.struct([("name", pa.string()), ("age", pa.int64())])
    return pa.table(
        {
            "k": [1, 2, 3],
            "p": ["x", "y", None],
            "who": pa.array([one, None, two], struct),
            "all": pa.array([[one, two], [], None], pa.list_(struct)),
            "by": pa.array([[("a", one)], None, [("b", two), ("c", None)]], pa.map_(pa.string(), struct)),
        }
    )


def read(path: Path, columns: dict[str, DataType] = COLUMNS, **options: str) -> list[Any]:
    source = DeltaSource(request(with_options(declared(path, columns), **options)))
    return read_from(source, *source.splits())[0]


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("parts", [(), ("p",)])
def test_rows_are_those_of_another_reader(tmp_path: Path, mode: str, parts: tuple[str, ...]) -> None:
    path = foreign(tmp_path / "t", None, schema(), legacy=(2, 5), parts=parts, delta_columnMapping_mode=mode)
    deltalake.write_deltalake(str(path), rows(), mode="append")
    files = list(path.rglob("*.parquet"))
    if mode == "id":
        # names in the files say nothing there
        for file in files:
            table = pq.read_table(file)
            pq.write_table(table.rename_columns([f"odd-{name}" for name in table.schema.names]), file)
    expected = Counter(str(tuple(row.values())) for row in rows().to_pylist())
    if mode == "name":
        there = pa.table(deltalake.DeltaTable(str(path)).scan()).select(list(COLUMNS)).to_pylist()
        assert Counter(str(tuple(row.values())) for row in there) == expected
    for options in ({}, STREAM, {"scan.mode": "full"}):
        assert Counter(str(row[1:]) for row in read(path, **options)) == expected
    assert sorted(row[1] for row in read(path, {"k": BIGINT}, **STREAM)) == [1, 2, 3]
    two = Call(
        BOOLEAN, True, function="equal", args=(Column(BIGINT, True, index=0), Literal(BIGINT, False, value=2))
    )
    source = DeltaSource(request(declared(path, {"k": BIGINT, "p": STRING}), predicate=two))
    found = [row for row in read_from(source, *source.splits())[0] if row[1] == 2]
    assert found == [(1, 2, "y")]


def test_a_file_without_ids(tmp_path: Path) -> None:
    stored = pa.table({"p": [1], "c2": ["x"]})
    path = foreign(tmp_path / "t", stored, schema()[:2], legacy=(2, 5), delta_columnMapping_mode="id")
    with pytest.raises(PenstockError, match="DAT-5305"):
        read(path, {"k": BIGINT})


def metadata(path: Path, *fields: dict[str, Any], mode: str = "name") -> None:
    """Write a version that sets the columns."""
    (first,) = (
        json.loads(line)["metaData"]
        for line in (path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
        if "metaData" in json.loads(line)
    )
    more = {"schemaString": json.dumps({"type": "struct", "fields": fields})}
    configuration = {"delta.columnMapping.mode": mode}
    add_version(path, [{"metaData": {**first, **more, "configuration": configuration}}])


def test_columns_that_are_renamed_and_names_that_come_again(tmp_path: Path) -> None:
    k, v = mapped("k", "long", 1, "k"), mapped("v", "string", 2, "v")
    fields = [(one["name"], one["type"], {}) for one in (k, v)]
    # a table that gets its mapping later: files have the names of then
    path = foreign(tmp_path / "t", pa.table({"k": [1], "v": ["old"]}), fields, legacy=(2, 5))
    metadata(path, k, v)
    deltalake.write_deltalake(str(path), pa.table({"k": [2], "v": ["two"]}), mode="append")
    renamed = mapped("w", "string", 2, "v")
    metadata(path, k, renamed)
    deltalake.write_deltalake(str(path), pa.table({"k": [3], "w": ["three"]}), mode="append")
    assert sorted(read(path, {"k": BIGINT, "w": STRING})) == [(1, 1, "old"), (1, 2, "two"), (1, 3, "three")]
    assert sorted(read(path, {"k": BIGINT, "v": STRING}, **{"scan.version": "2"})) == [
        (1, 1, "old"),
        (1, 2, "two"),
    ]
    # a stream by the newest name has the values of before; by the former name it ends where that goes
    assert read(path, {"k": BIGINT, "w": STRING}, **STREAM) == [(1, 1, "old"), (1, 2, "two"), (1, 3, "three")]
    assert len(read(path, {"k": BIGINT, "v": STRING}, **STREAM, **{"scan.end-version": "2"})) == 2
    with pytest.raises(PenstockError, match="has no column v any more") as raised:
        read(path, {"k": BIGINT, "v": STRING}, **STREAM)
    assert raised.value.code == "DAT-5306"
    # another column gets the name: one stream is not of both
    metadata(path, k, renamed, mapped("v", "string", 3, "c-3"))
    deltalake.write_deltalake(str(path), pa.table({"k": [4], "w": ["w"], "v": ["new"]}), mode="append")
    assert sorted(read(path, {"k": BIGINT, "v": STRING}), key=str)[3:] == [(1, 4, "new")]
    swapped = [mapped("v", "string", 2, "v"), mapped("w", "string", 3, "c-3")]
    metadata(path, k, *swapped)
    since = {"scan.mode": "from-version", "scan.version": "5"}
    with pytest.raises(PenstockError, match="has another column v") as raised:
        read(path, {"k": BIGINT, "v": STRING}, **since)
    assert raised.value.code == "DAT-5306"
