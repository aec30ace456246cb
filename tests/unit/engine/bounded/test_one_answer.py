"""One file, one answer: the stream, DuckDB and Spark read the same rows of it, or refuse it in the same
words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    DOUBLE,
    STRING,
    DataType,
    Decimal,
    Row,
    to_arrow,
    to_spark,
)
from penstock.engine.api.operator import Services
from penstock.engine.bounded.backend import BoundedBackend
from penstock.engine.bounded.file_relations import FileRelation, file_relation
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.bounded.spark.backend import SparkBackend
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.engine.formats import missing_columns
from penstock.engine.formats.file_types import Fit, fit, matching, read_as
from penstock.planner.logical.scan import Scan
from penstock.planner.sql_generator.query import ScannedTable
from tests.harness.length import of_length
from tests.harness.reading import read, table_of
from tests.unit.engine.bounded.file_cases import CASES, Outcome, outcome, typed_columns


@pytest.fixture(scope="module")
def backends() -> Iterator[BoundedBackends]:
    made = BoundedBackends(Services(RegisteredTables()))
    yield made
    made.close()


@pytest.fixture(scope="module")
def spark(backends: BoundedBackends) -> BoundedBackend:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    return backends.backend("spark")


def bounded(
    backend: BoundedBackend, table: CatalogTable, places: tuple[int, ...], time_zone: str = "UTC"
) -> list[tuple[Any, ...]]:
    plan = Scan(table, places)
    rows = pa.Table.from_batches(list(backend.run(plan, time_zone=time_zone)), plan.schema.to_arrow())
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def streamed(table: CatalogTable, places: tuple[int, ...]) -> list[tuple[Any, ...]]:
    names = [table.source_schema.names[place] for place in places]
    return [tuple(row[name] for name in names) for row in read(table, columns=names)]


def agrees(found: Outcome, expected: Outcome) -> bool:
    if isinstance(found, str) or isinstance(expected, str):
        return isinstance(found, str) and isinstance(expected, str) and found.startswith(expected)
    return found == sorted(expected, key=repr)


@pytest.mark.longer
@pytest.mark.parametrize("name", list(CASES))
def test_the_stream_and_duckdb(backends: BoundedBackends, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    table, places = case.table(tmp_path), case.places()
    stream = outcome(lambda: streamed(table, places), tmp_path)
    assert agrees(stream, case.expected), stream
    backend = backends.backend("duckdb")
    for zone in of_length(["Asia/Kolkata"], ["UTC", "Asia/Kolkata"]):
        assert outcome(lambda zone=zone: bounded(backend, table, places, zone), tmp_path) == stream


def test_noughts_of_partitions_keep_their_sign(backends: BoundedBackends, tmp_path: Path) -> None:
    """They are equal, so no comparison of rows sees it."""
    table = CASES["partitions of nought"].table(tmp_path)
    for rows in (streamed(table, (1, 0)), bounded(backends.backend("duckdb"), table, (1, 0))):
        assert [repr(k) for _, k in sorted(rows)] == ["-0.0", "0.0", "0.0"]


def test_who_reads_files_for_backends(tmp_path: Path) -> None:
    """Cases that are to show what a backend reads by itself show that, and the others have a reason."""
    found = {}
    for number, (name, case) in enumerate((name, case) for name, case in CASES.items() if case.by):
        (tmp_path / str(number)).mkdir()
        relation = ScannedTable(case.table(tmp_path / str(number)), case.places())
        readers = {"DuckDB": file_relation(relation), "Spark": file_relation(relation, hadoop=True)}
        found[name] = (
            " ".join(reader for reader, files in readers.items() if isinstance(files, FileRelation))
            or "nobody"
        )
        assert all(isinstance(files, FileRelation) or files for files in readers.values())
    assert found == {name: case.by for name, case in CASES.items() if case.by}


def test_without_the_table_of_types_there_are_two_answers(
    backends: BoundedBackends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: DuckDB reads every column of a matching name by its own rules."""

    def lenient(path: str, schema: pa.Schema, wanted: Field) -> tuple[pa.Field, Fit]:
        return schema.field(matching(schema.names, wanted.name)[0]), Fit.SAME

    monkeypatch.setattr(missing_columns, "file_column", lenient)
    for name in (
        "DECIMAL of fewer digits",
        "nanoseconds",
        "BINARY as STRING",
        "a time of day as DATE",
        "instants as TIMESTAMP",
        "STRING as BIGINT",
    ):
        directory = tmp_path / name
        directory.mkdir()
        case = CASES[name]
        table, places = case.table(directory), case.places()
        assert agrees(
            outcome(lambda table=table, places=places: streamed(table, places), directory), case.expected
        )
        theirs = outcome(
            lambda table=table, places=places: bounded(
                backends.backend("duckdb"), table, places, "Asia/Kolkata"
            ),
            directory,
        )
        assert not agrees(theirs, case.expected), name


def declared(pairs: list[tuple[pa.Array, DataType]], directory: Path) -> CatalogTable:
    columns = {f"c{number}": kind for number, (_, kind) in enumerate(pairs)}
    pq.write_table(
        pa.table({f"c{number}": values for number, (values, _) in enumerate(pairs)}), directory / "a.parquet"
    )
    return table_of(columns, {"connector": "filesystem", "path": str(directory), "format": "parquet"})


def native_pairs() -> list[tuple[pa.Array, DataType]]:
    """What backends read themselves: pairs of types whose values are the same, or more digits of the same."""
    return [
        (values, kind) for values, kind in typed_columns() if fit(values.type, kind) in (Fit.SAME, Fit.WIDER)
    ]


def check_types(backend: BoundedBackend, directory: Path) -> None:
    pairs = native_pairs()
    table = declared(pairs, directory)
    places = tuple(range(len(pairs)))
    assert isinstance(file_relation(ScannedTable(table, places)), FileRelation)
    ours, theirs = (
        list(zip(*rows, strict=True))
        for rows in (streamed(table, places), bounded(backend, table, places, "Asia/Kolkata"))
    )
    wrong = {
        (str(v.type), str(k)): (a, b)
        for (v, k), a, b in zip(pairs, ours, theirs, strict=True)
        if list(map(repr, a)) != list(map(repr, b))
    }
    assert not wrong


def test_types_that_duckdb_reads_itself(backends: BoundedBackends, tmp_path: Path) -> None:
    check_types(backends.backend("duckdb"), tmp_path)


def test_what_is_read_is_what_the_file_holds() -> None:
    """Of types that fit whole, each value read as the declared type and back is the value that was."""
    for values, kind in native_pairs():
        back = read_as(values, kind)
        assert back.type == to_arrow(kind) and back.null_count == 1
        plain = values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values
        if pa.types.is_decimal(back.type) or pa.types.is_timestamp(back.type):
            assert pc.all(pc.equal(back, plain.cast(back.type))).as_py(), (values.type, kind)
        else:
            assert back.cast(plain.type) == plain, (values.type, kind)


def test_what_does_not_fit_is_refused_whatever_is_in_the_file(tmp_path: Path) -> None:
    refused = [(values, kind) for values, kind in typed_columns() if fit(values.type, kind) is None]
    assert len(refused) > 100
    for number, pair in enumerate(refused[::9]):
        directory = tmp_path / str(number)
        directory.mkdir()
        table = declared([pair], directory)
        for reading in (
            lambda table=table: read(table),
            lambda table=table: file_relation(ScannedTable(table, (0,))),
        ):
            with pytest.raises(PenstockError, match="DAT-4205") as caught:
                reading()
            assert str(caught.value.hint).startswith("declare it ")


@pytest.mark.spark
@pytest.mark.longer
def test_spark(spark: BoundedBackend, tmp_path: Path) -> None:
    """Refusals are made before Spark is asked, so one of each code is enough here; every fourth file in brief."""
    cases = {
        case.expected[:8] if isinstance(case.expected, str) else name: (name, case)
        for name, case in CASES.items()
    }
    assert len(cases) > 30
    wrong: dict[str, tuple[Outcome, Outcome]] = {}
    for number, (name, case) in enumerate([*cases.values()][:: of_length(4, 1)]):
        directory = tmp_path / str(number)
        directory.mkdir()
        table = case.table(directory)
        found = outcome(
            lambda table=table, case=case: bounded(spark, table, case.places(), "Asia/Kolkata"), directory
        )
        if not agrees(found, case.expected):
            wrong[name] = (found, case.expected)
    assert not wrong


@pytest.mark.spark
def test_spark_reads_json_that_is_none(spark: BoundedBackend, tmp_path: Path) -> None:
    """Why json is read for it: its own reader takes each of these lines, which are refused here."""
    lines = [
        '{"n":1,"n":2}',
        '{"n":1} {"n":2}',
        '{"n":1} x',
        '[{"n":1}]',
        "{'n':1}",
        '{"s":1}',
        '{"s":{"a": 1}}',
        '{"s":"\\ud800"}',
    ]
    lines += ['{"d":1e400}', '{"d":"NaN"}', '{"m":1.239}', '{"r":{"a":1,"a":2}}']
    columns = {"n": BIGINT, "s": STRING, "d": DOUBLE, "m": Decimal(10, 2), "r": Row((("a", BIGINT),))}
    session = SESSIONS.new("UTC")
    (tmp_path / "all").mkdir()
    for number, line in enumerate(lines):
        (tmp_path / str(number)).mkdir()
        for name in (f"{number}/a", f"all/{number}"):
            (tmp_path / f"{name}.json").write_text(line + "\n", encoding="utf-8")
        table = table_of(
            columns, {"connector": "filesystem", "path": str(tmp_path / str(number)), "format": "json"}
        )
        with pytest.raises(PenstockError, match="DAT-4201"):
            streamed(table, (0, 1, 2, 3, 4))
    reader = session.read.schema(
        ", ".join(f"{name} {to_spark(kind)}" for name, kind in columns.items())
    ).option("mode", "FAILFAST")
    assert len(reader.json(f"file://{tmp_path}/all").collect()) == len(lines)
    SESSIONS.release(session)
    with pytest.raises(PenstockError, match="DAT-4201"):
        bounded(spark, table, (4,))


def test_explain_says_who_reads_a_table(tmp_path: Path) -> None:
    """And why, and what is wrong with the files; no Spark is started for that."""
    spark = SparkBackend(Services(RegisteredTables()), Settings())
    shown = {}
    for name in (
        "csv, partitions",
        "parquet, partitions with odd names",
        "csv, A and a",
        "names by case",
        "MAP",
        "BIGINT as INT",
    ):
        (tmp_path / name).mkdir()
        case = CASES[name]
        _, found = spark.explain(Scan(case.table(tmp_path / name), case.places())).rsplit("\n", 1)
        shown[name] = found.replace(str(tmp_path), "").removeprefix("-- t_0, t: ")
    options = {"connector": "filesystem", "path": str(tmp_path / "a.json"), "format": "json"}
    shown["json"] = spark.explain(Scan(table_of({"a": BIGINT}, options), (0,))).rsplit("\n", 1)[1]
    assert shown == {
        "csv, partitions": "3 files of csv read by Spark, partitions by the names of directories",
        "parquet, partitions with odd names": "10 files of parquet read by Spark, partitions as constants",
        "csv, A and a": "DAT-4208 /csv, A and a/0.csv has 2 columns for a: A and a",
        "names by case": "2 files of parquet read by Spark",
        "MAP": "read by penstock, handed over as Arrow: column m is MAP<STRING, INT>",
        "BIGINT as INT": "read by penstock, handed over as Arrow: column n is int64 in 0.parquet",
        "json": "-- t_0, t: read by penstock, handed over as Arrow: other readers take for json what ours refuses",
    }


@pytest.mark.spark
def test_types_that_spark_reads_itself(spark: BoundedBackend, tmp_path: Path) -> None:
    check_types(spark, tmp_path)


NAMES = [
    "my data",
    "é",
    "日本",
    "a+b",
    "x,y",
    "a'b",
    "a#b",
    "a%20b",
    "%",
    "[x]",
    "{a,b}",
    "*",
    "?",
    "[!a]*",
    "back\\slash",
    'a"b',
    "a:b",
    "a;b&c",
]
NAMES += ["a=b", "two\nlines", "tab\tbed", "~", "$x", "a`b", " lead", "trail ", "-", "x@1-2#3-4", "é%C3%A9"]


def named_files(root: Path, kind: str, names: list[str]) -> CatalogTable:
    """A file in a directory of each name, and directories that a pattern would match; each holds its own
    name.
    """
    for name in [*names, "x", "a", "b", "axb"]:
        (root / name).mkdir(parents=True)
        file = root / name / f"{name.strip('.') or 'f'}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.table({"name": [name]}), file)
        else:
            quoted = name.replace('"', '""') if kind == "csv" else json.dumps(name)[1:-1]
            file.write_text(f'name\n"{quoted}"\n' if kind == "csv" else f'{{"name": "{quoted}"}}\n')
    options = {"connector": "filesystem", "path": str(root), "format": kind} | (
        {"csv.multiline": "true"} if kind == "csv" else {}
    )
    return table_of({"name": STRING}, options)


def check_names(backend: BoundedBackend, directory: Path) -> None:
    """Below a directory whose own name means something to a URL or a pattern, and each of the names as the
    table's path.
    """
    for kind in ("csv", "json", "parquet"):
        # which Spark does not open itself
        names = NAMES if kind == "parquet" else [name for name in NAMES if ":" not in name]
        expected = sorted([*names, "x", "a", "b", "axb"])
        table = named_files(directory / "50% {é} #a" / kind, kind, names)
        assert sorted(name for (name,) in streamed(table, (0,))) == expected
        assert sorted(name for (name,) in bounded(backend, table, (0,))) == expected
    case = CASES["parquet, partitions"]
    (directory / "50% {é} #a" / "k=[1]").mkdir()
    table = case.table(directory / "50% {é} #a" / "k=[1]")
    assert agrees(sorted(bounded(backend, table, case.places()), key=repr), case.expected)
    for name in NAMES if backend.name == "duckdb" else ("*", "a%20b", "[x]"):
        path = directory / "50% {é} #a" / "parquet" / name
        table = table_of(
            {"name": STRING}, {"connector": "filesystem", "path": str(path), "format": "parquet"}
        )
        assert streamed(table, (0,)) == bounded(backend, table, (0,)) == [(name,)]


def test_names_of_files_on_duckdb(backends: BoundedBackends, tmp_path: Path) -> None:
    check_names(backends.backend("duckdb"), tmp_path)


@pytest.mark.spark
def test_names_of_files_on_spark(spark: BoundedBackend, tmp_path: Path) -> None:
    check_names(spark, tmp_path)
