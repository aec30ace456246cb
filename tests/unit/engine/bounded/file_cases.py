"""Files as others write them, and what all readers must make of them: the same rows, or the same refusal."""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal as Exact
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    Array,
    DataType,
    Decimal,
    Map,
    Row,
)
from tests.harness.reading import table_of

Outcome = list[tuple[Any, ...]] | str
Write = Callable[[Path], None]


@dataclass(frozen=True)
class FileCase:
    """Files, the columns declared over them, and what is read: rows, or a refusal's code and words."""

    write: Write
    columns: dict[str, DataType]
    expected: Outcome
    options: dict[str, str] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()
    kind: str = "parquet"
    partitions: tuple[str, ...] = ()
    by: str = ""
    """Who reads the files for DuckDB, or "DuckDB Spark" for both by themselves; empty where it matters to
    no test.
    """

    def table(self, directory: Path) -> CatalogTable:
        self.write(directory)
        options = {"connector": "filesystem", "path": str(directory), "format": self.kind, **self.options}
        return table_of(self.columns, options, partitioned_by=self.partitions)

    def places(self) -> tuple[int, ...]:
        names = list(self.columns)
        return tuple(names.index(name) for name in self.wanted or names)


def outcome(read: Callable[[], list[tuple[Any, ...]]], directory: Path) -> Outcome:
    """The rows, in order of their texts, or the refusal without the directory's name."""
    try:
        return sorted(read(), key=repr)
    except PenstockError as error:
        return f"{error.code}: {error.message} ({error.hint or error.detail})".replace(str(directory), "")


def parquet(*tables: pa.Table | dict[str, pa.Array], **how: Any) -> Write:
    def write(directory: Path) -> None:
        for number, given in enumerate(tables):
            pq.write_table(
                given if isinstance(given, pa.Table) else pa.table(given),
                directory / f"{number}.parquet",
                **how,
            )

    return write


def parted(kind: str, *directories: str, **more: Any) -> Write:
    """A file in each directory; its column n is the directory's number, from 0. ``more``: further columns,
    one value each.
    """

    def write(directory: Path) -> None:
        for number, name in enumerate(directories):
            (directory / name).mkdir(parents=True, exist_ok=True)
            columns = {"n": number, **more}
            if kind == "csv":
                (directory / name / f"{number}.csv").write_text(
                    ",".join(columns) + "\n" + ",".join(map(str, columns.values())) + "\n"
                )
            else:
                pq.write_table(
                    pa.table({name: [value] for name, value in columns.items()}),
                    directory / name / f"{number}.parquet",
                )

    return write


def csv(*texts: str) -> Write:
    return lambda directory: (
        [(directory / f"{number}.csv").write_bytes(text.encode()) for number, text in enumerate(texts)]
        and None
    )


def _columns(*pairs: tuple[str, pa.Array]) -> pa.Table:
    return pa.Table.from_arrays([values for _, values in pairs], names=[name for name, _ in pairs])


def _decimals(text: str, precision: int, scale: int) -> pa.Array:
    kind = pa.decimal128 if precision <= 38 else pa.decimal256
    return pa.array([None if one == "NULL" else Exact(one) for one in text.split()], kind(precision, scale))


_ONE, _TWO = pa.array([1], pa.int64()), pa.array([2], pa.int64())
_ID = uuid.UUID("8e0d8bb2-bf5e-4e42-bb00-55737fc1be7f")
_IDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([_ID.bytes, None], pa.binary(16)))
_JSON = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(['{"a":1}', None]))
_DOUBLED = pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32()))
_NS = pa.array([1_001, -1, None], pa.timestamp("ns"))
_BROKEN = pa.array([b"ok", b"\xff"], pa.binary()).view(pa.string())


def _legacy(directory: Path) -> None:
    times = pa.array([datetime(1582, 10, 4), datetime(9999, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us"))
    pq.write_table(pa.table({"t": times}), directory / "a.parquet", use_deprecated_int96_timestamps=True)


def _latin(directory: Path) -> None:
    (directory / "0.csv").write_bytes("id,s\n1,a\n2,é\n".encode("latin-1"))


CASES: dict[str, FileCase] = {
    # names
    "names by case": FileCase(parquet({"ID": _ONE}, {"Id": _TWO}), {"id": BIGINT}, [(1,), (2,)]),
    "A and a": FileCase(
        parquet(_columns(("A", _ONE), ("a", _TWO))),
        {"a": BIGINT},
        "DAT-4208: /0.parquet has 2 columns for a: A and a",
    ),
    "A and a, one not read": FileCase(
        parquet(_columns(("A", _ONE), ("a", _TWO), ("b", _TWO))),
        {"A": BIGINT, "b": BIGINT},
        [(2,)],
        wanted=("b",),
    ),
    "a and a": FileCase(
        parquet(_columns(("a", _ONE), ("a", _TWO))),
        {"a": BIGINT},
        "DAT-4208: /0.parquet has 2 columns for a: a and a",
    ),
    "csv, A and a": FileCase(
        csv("A,a\n1,2\n"), {"a": BIGINT}, "DAT-4208: /0.csv has 2 columns for a: A and a", kind="csv"
    ),
    "csv, a and a": FileCase(
        csv("a,a,b\n1,2,3\n"), {"a": BIGINT, "b": BIGINT}, [(3,)], wanted=("b",), kind="csv"
    ),
    "other names": FileCase(
        parquet(
            _columns(
                ("a b", _ONE),
                ("é", _TWO),
                ("x.y", _ONE),
                ("a`b", _TWO),
                ('q"q', _ONE),
                ("", _TWO),
                ("a,b;{}()=\t\n", _ONE),
            )
        ),
        {"a b": BIGINT, "É": BIGINT, "x.y": BIGINT, "a`b": BIGINT, 'q"q': BIGINT, "a,b;{}()=\t\n": BIGINT},
        [(1, 2, 1, 2, 1, 1)],
    ),
    "a missing column": FileCase(
        parquet({"a": _ONE, "b": _ONE}, {"a": _TWO}),
        {"a": BIGINT, "b": BIGINT},
        "DAT-4203: /1.parquet has no column b",
    ),
    "a missing column that may be NULL": FileCase(
        parquet({"a": _ONE, "b": _ONE}, {"a": _TWO}),
        {"a": BIGINT, "b": BIGINT},
        [(1, 1), (2, None)],
        {"source.missing-columns": "null"},
    ),
    # texts of csv
    "a byte order mark": FileCase(
        csv("\ufeffid,s\n1,é\n"), {"id": BIGINT, "s": STRING}, [(1, "é")], kind="csv"
    ),
    "a byte order mark without a header": FileCase(
        csv("\ufeff1,é\n"), {"id": BIGINT, "s": STRING}, [(1, "é")], {"csv.header": "false"}, kind="csv"
    ),
    "lines of Windows": FileCase(
        csv('id,s\r\n1, a \r\n2,""\r\n3,\r\n'),
        {"id": BIGINT, "s": STRING},
        [(1, " a "), (2, ""), (3, None)],
        kind="csv",
    ),
    "csv, days as TIMESTAMP_LTZ": FileCase(
        csv("t\n2024-01-02\n2024-01-02 03:04:05\n2024-01-02T03:04:05+02:00\n"),
        {"t": TIMESTAMP_LTZ},
        [
            (datetime(2024, 1, 2, hour, minute, second, tzinfo=UTC),)
            for hour, minute, second in ((0, 0, 0), (1, 4, 5), (3, 4, 5))
        ],
        kind="csv",
        by="DuckDB Spark",
    ),
    "Latin-1": FileCase(_latin, {"id": BIGINT, "s": STRING}, "DAT-4201: /0.csv, row 2", kind="csv"),
    "a byte order mark before values of many lines": FileCase(
        csv('\ufeffé,1\n"a\nb",2\n'),
        {"s": STRING, "id": BIGINT},
        [("é", 1), ("a\nb", 2)],
        {"csv.header": "false", "csv.multiline": "true"},
        kind="csv",
    ),
    # numbers
    "INT, then BIGINT": FileCase(
        parquet(
            {"n": pa.array([1], pa.int32())},
            {"n": pa.array([2**40], pa.int64())},
            {"n": pa.array([3], pa.uint8())},
        ),
        {"n": BIGINT},
        [(1,), (1099511627776,), (3,)],
    ),
    "BIGINT as INT": FileCase(
        parquet({"n": pa.array([1, None, -(2**31)], pa.int64())}), {"n": INT}, [(-(2**31),), (1,), (None,)]
    ),
    "BIGINT too large for INT": FileCase(
        parquet({"n": pa.array([2**31], pa.int64())}), {"n": INT}, "DAT-4206: /0.parquet: a value of column n"
    ),
    "whole DOUBLE as BIGINT": FileCase(parquet({"n": pa.array([1.0, None])}), {"n": BIGINT}, [(1,), (None,)]),
    "NaN as BIGINT": FileCase(
        parquet({"n": pa.array([1.0, float("nan")])}),
        {"n": BIGINT},
        "DAT-4206: /0.parquet: a value of column n",
    ),
    "DOUBLE as DECIMAL": FileCase(
        parquet({"n": pa.array([1.5])}),
        {"n": Decimal(10, 2)},
        "DAT-4205: /0.parquet: column n holds DOUBLE, not DECIMAL(10, 2) (declare it DOUBLE",
    ),
    "DECIMAL as DOUBLE": FileCase(
        parquet({"n": _decimals("1.5", 10, 2)}),
        {"n": DOUBLE},
        "DAT-4205: /0.parquet: column n holds DECIMAL(10, 2), not",
    ),
    "STRING as BIGINT": FileCase(
        parquet({"n": pa.array(["1"])}),
        {"n": BIGINT},
        "DAT-4205: /0.parquet: column n holds STRING, not BIGINT",
    ),
    "BOOLEAN as INT": FileCase(
        parquet({"n": pa.array([True])}), {"n": INT}, "DAT-4205: /0.parquet: column n holds BOOLEAN, not INT"
    ),
    "DECIMAL of fewer digits": FileCase(
        parquet({"m": _decimals("1.239", 10, 3)}),
        {"m": Decimal(10, 2)},
        "DAT-4206: /0.parquet: a value of column m does not fit DECIMAL(10, 2)",
    ),
    "DECIMAL of fewer digits that are noughts": FileCase(
        parquet({"m": _decimals("1.230", 20, 3)}), {"m": Decimal(20, 2)}, [(Exact("1.23"),)]
    ),
    "DECIMAL of two scales": FileCase(
        parquet({"m": _decimals("1.3 NULL", 10, 1)}, {"m": _decimals("1.257", 10, 3)}),
        {"m": Decimal(12, 3)},
        [(Exact("1.257"),), (Exact("1.300"),), (None,)],
    ),
    "DECIMAL of 40 digits": FileCase(
        parquet({"m": _decimals("1.25", 40, 2)}), {"m": Decimal(38, 2)}, [(Exact("1.25"),)]
    ),
    "UBIGINT": FileCase(
        parquet({"n": pa.array([2**64 - 1], pa.uint64())}), {"n": Decimal(20, 0)}, [(Exact(2**64 - 1),)]
    ),
    "UBIGINT too large": FileCase(
        parquet({"n": pa.array([2**63], pa.uint64())}),
        {"n": BIGINT},
        "DAT-4206: /0.parquet: a value of column n",
    ),
    "HALF": FileCase(parquet({"n": pa.array([1.5], pa.float16())}), {"n": FLOAT}, [(1.5,)]),
    # texts and bytes
    "BINARY as STRING": FileCase(
        parquet({"s": pa.array(["é".encode(), None], pa.binary())}), {"s": STRING}, [("é",), (None,)]
    ),
    "BINARY that is no text": FileCase(
        parquet({"s": pa.array([b"\xff"], pa.binary())}),
        {"s": STRING},
        "DAT-4206: /0.parquet: a value of column s does not fit STRING",
    ),
    "STRING that is none": FileCase(
        parquet({"s": _BROKEN}),
        {"s": STRING},
        "DAT-4206: /0.parquet: a value of column s does not fit STRING",
    ),
    "dictionaries and large texts": FileCase(
        parquet(
            {
                "s": pa.array(["a", None, "a"]).dictionary_encode(),
                "l": pa.array(["x", "y", None], pa.large_string()),
            }
        ),
        {"s": STRING, "l": STRING},
        [("a", None), ("a", "x"), (None, "y")],
    ),
    "UUID as STRING": FileCase(parquet({"u": _IDS}), {"u": STRING}, [(str(_ID),), (None,)]),
    "UUID as BYTES": FileCase(parquet({"u": _IDS}), {"u": BINARY}, [(_ID.bytes,), (None,)]),
    "UUID as BIGINT": FileCase(
        parquet({"u": _IDS}), {"u": BIGINT}, "DAT-4205: /0.parquet: column u holds STRING, not BIGINT"
    ),
    "JSON": FileCase(parquet({"j": _JSON}), {"j": STRING}, [('{"a":1}',), (None,)]),
    # times
    "nanoseconds": FileCase(
        parquet({"t": _NS}),
        {"t": TIMESTAMP},
        [(datetime(1969, 12, 31, 23, 59, 59, 999999),), (datetime(1970, 1, 1, 0, 0, 0, 1),), (None,)],
    ),
    "INT96": FileCase(
        _legacy, {"t": TIMESTAMP}, [(datetime(1582, 10, 4),), (datetime(9999, 12, 31, 23, 59, 59, 999999),)]
    ),
    "instants as TIMESTAMP": FileCase(
        parquet({"t": pa.array([0], pa.timestamp("us", "Europe/Berlin"))}),
        {"t": TIMESTAMP},
        [(datetime(1970, 1, 1),)],
    ),
    "TIMESTAMP as instants": FileCase(
        parquet({"t": pa.array([0], pa.timestamp("ms"))}),
        {"t": TIMESTAMP_LTZ},
        [(datetime(1970, 1, 1, tzinfo=UTC),)],
    ),
    "midnights as DATE": FileCase(
        parquet({"d": pa.array([86_400_000, None], pa.timestamp("ms"))}),
        {"d": DATE},
        [(date(1970, 1, 2),), (None,)],
    ),
    "a time of day as DATE": FileCase(
        parquet({"d": pa.array([1], pa.timestamp("us"))}),
        {"d": DATE},
        "DAT-4206: /0.parquet: a value of column d",
    ),
    "BIGINT as TIMESTAMP": FileCase(
        parquet({"t": _ONE}),
        {"t": TIMESTAMP},
        "DAT-4205: /0.parquet: column t holds BIGINT, not TIMESTAMP(6)",
    ),
    # no values, many values
    "nothing but NULL": FileCase(
        parquet({"n": pa.nulls(1)}, {"n": pa.array([date(2024, 1, 2)])}),
        {"n": DATE},
        [(date(2024, 1, 2),), (None,)],
    ),
    "nothing but NULL, of each type": FileCase(
        parquet({name: pa.nulls(1) for name in "abcdefg"}),
        {
            "a": BOOLEAN,
            "b": TINYINT,
            "c": DOUBLE,
            "d": Decimal(10, 2),
            "e": STRING,
            "f": TIMESTAMP_LTZ,
            "g": Map(STRING, INT),
        },
        [(None,) * 7],
    ),
    "no rows": FileCase(parquet({"n": pa.array([], pa.int64())}), {"n": BIGINT}, []),
    "a MAP with a key twice": FileCase(
        parquet({"m": _DOUBLED}), {"m": Map(STRING, INT)}, "DAT-4206: /0.parquet: a value of column m"
    ),
    "ROW fields by case": FileCase(
        parquet({"r": pa.array([{"a": 1, "A": 2}])}),
        {"r": Row((("a", BIGINT),))},
        "DAT-4205: /0.parquet: column r holds ROW<a BIGINT, A BIGINT>, not",
    ),
    "ARRAY": FileCase(
        parquet({"x": pa.array([[1, None], None, []], pa.large_list(pa.int16()))}),
        {"x": Array(BIGINT)},
        [([1, None],), ([],), (None,)],
    ),
    # partitions
    "parquet, partitions": FileCase(
        parted(
            "parquet", "d=2024-01-02/k=007", "d=2024-01-02/k=__HIVE_DEFAULT_PARTITION__", "d=0001-01-01/k=8"
        ),
        {"k": INT, "n": BIGINT, "d": DATE},
        [(7, 0, date(2024, 1, 2)), (None, 1, date(2024, 1, 2)), (8, 2, date(1, 1, 1))],
        partitions=("d", "k"),
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, partitions as texts": FileCase(
        parted(
            "parquet", "k=007", "k=1e3", "k=__HIVE_DEFAULT_PARTITION__", "k=2024-01-02", "k=true", "k=NULL"
        ),
        {"k": STRING, "n": BIGINT},
        [("007", 0), ("1e3", 1), (None, 2), ("2024-01-02", 3), ("true", 4), ("NULL", 5)],
        partitions=("k",),
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, partitions with odd names": FileCase(
        parted(
            "parquet",
            "k= x ",
            "k=",
            "k=%C3%A9",
            "k=é",
            "k=a%2Fb",
            "k=%5F_HIVE_DEFAULT_PARTITION__",
            "k='\"\\\\",
            "k=a=b",
            "k=%0A",
            "k=%e9",
        ),
        {"k": STRING, "n": BIGINT},
        [
            (" x ", 0),
            ("", 1),
            ("é", 2),
            ("é", 3),
            ("a/b", 4),
            ("__HIVE_DEFAULT_PARTITION__", 5),
            ("'\"\\\\", 6),
            ("a=b", 7),
            ("\n", 8),
            ("é", 9),
        ],
        partitions=("k",),
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, partitions alone": FileCase(
        parted("parquet", "k=1", "k=2"),
        {"k": TINYINT, "n": BIGINT},
        [(1,), (2,)],
        wanted=("k",),
        partitions=("k",),
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, partitions that are not read": FileCase(
        parted("parquet", "k=1", "k=x"),
        {"k": TINYINT, "n": BIGINT},
        [(0,), (1,)],
        wanted=("n",),
        partitions=("k",),
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, a file's own column of a partition's name": FileCase(
        parted("parquet", "k=1", "k=2", k=9),
        {"k": BIGINT, "n": BIGINT},
        [(1, 0), (2, 1)],
        partitions=("k",),
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, directories that say nothing of a column": FileCase(
        parted("parquet", "k=1", "k=2/j=3", k=9),
        {"k": BIGINT, "n": BIGINT},
        [(9, 0), (9, 1)],
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, partitions between others": FileCase(
        parted("parquet", "k=1", "j=3/k=2", "x/k=3", "k=4/x", j=5),
        {"k": BIGINT, "n": BIGINT, "j": BIGINT},
        [(1, 0, 5), (2, 1, 5), (3, 2, 5), (4, 3, 5)],
        partitions=("k",),
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, partitions in any order and case": FileCase(
        parted("parquet", "K=1/J=2", "j=4/k=3"),
        {"k": BIGINT, "j": INT},
        [(1, 2), (3, 4)],
        partitions=("j", "k"),
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, partitions in capitals": FileCase(
        parted("parquet", "K=1", "K=2"),
        {"k": BIGINT, "n": BIGINT},
        [(1, 0), (2, 1)],
        partitions=("k",),
        kind="parquet",
        by="DuckDB Spark",
    ),
    "parquet, a partition of another type": FileCase(
        parted("parquet", "k=1", "k=x"),
        {"k": INT, "n": BIGINT},
        "DAT-4110: /k=x/1.parquet: directory k=x is not a INT",
        partitions=("k",),
        kind="parquet",
    ),
    "parquet, a file without a partition": FileCase(
        parted("parquet", "k=1", "j=2"),
        {"k": INT, "n": BIGINT},
        "DAT-4110: /j=2/1.parquet is in no directory k=..",
        partitions=("k",),
        kind="parquet",
    ),
    "parquet, many partitions": FileCase(
        parted("parquet", *(f"k=v{number}" for number in range(70))),
        {"n": BIGINT, "k": STRING},
        [(number, f"v{number}") for number in range(70)],
        partitions=("k",),
        kind="parquet",
        by="Spark",
    ),
    "parquet, many partitions with odd names": FileCase(
        parted("parquet", *(f"k=%20{number}" for number in range(70))),
        {"n": BIGINT, "k": STRING},
        [(number, f" {number}") for number in range(70)],
        partitions=("k",),
        kind="parquet",
        by="nobody",
    ),
    "csv, partitions": FileCase(
        parted("csv", "d=2024-01-02/k=007", "d=2024-01-02/k=__HIVE_DEFAULT_PARTITION__", "d=0001-01-01/k=8"),
        {"k": INT, "n": BIGINT, "d": DATE},
        [(7, 0, date(2024, 1, 2)), (None, 1, date(2024, 1, 2)), (8, 2, date(1, 1, 1))],
        partitions=("d", "k"),
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, partitions as texts": FileCase(
        parted("csv", "k=007", "k=1e3", "k=__HIVE_DEFAULT_PARTITION__", "k=2024-01-02", "k=true", "k=NULL"),
        {"k": STRING, "n": BIGINT},
        [("007", 0), ("1e3", 1), (None, 2), ("2024-01-02", 3), ("true", 4), ("NULL", 5)],
        partitions=("k",),
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, partitions with odd names": FileCase(
        parted(
            "csv",
            "k= x ",
            "k=",
            "k=%C3%A9",
            "k=é",
            "k=a%2Fb",
            "k=%5F_HIVE_DEFAULT_PARTITION__",
            "k='\"\\\\",
            "k=a=b",
            "k=%0A",
            "k=%e9",
        ),
        {"k": STRING, "n": BIGINT},
        [
            (" x ", 0),
            ("", 1),
            ("é", 2),
            ("é", 3),
            ("a/b", 4),
            ("__HIVE_DEFAULT_PARTITION__", 5),
            ("'\"\\\\", 6),
            ("a=b", 7),
            ("\n", 8),
            ("é", 9),
        ],
        partitions=("k",),
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, partitions alone": FileCase(
        parted("csv", "k=1", "k=2"),
        {"k": TINYINT, "n": BIGINT},
        [(1,), (2,)],
        wanted=("k",),
        partitions=("k",),
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, partitions that are not read": FileCase(
        parted("csv", "k=1", "k=x"),
        {"k": TINYINT, "n": BIGINT},
        [(0,), (1,)],
        wanted=("n",),
        partitions=("k",),
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, a file's own column of a partition's name": FileCase(
        parted("csv", "k=1", "k=2", k=9),
        {"k": BIGINT, "n": BIGINT},
        [(1, 0), (2, 1)],
        partitions=("k",),
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, directories that say nothing of a column": FileCase(
        parted("csv", "k=1", "k=2/j=3", k=9),
        {"k": BIGINT, "n": BIGINT},
        [(9, 0), (9, 1)],
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, partitions between others": FileCase(
        parted("csv", "k=1", "j=3/k=2", "x/k=3", "k=4/x", j=5),
        {"k": BIGINT, "n": BIGINT, "j": BIGINT},
        [(1, 0, 5), (2, 1, 5), (3, 2, 5), (4, 3, 5)],
        partitions=("k",),
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, partitions in any order and case": FileCase(
        parted("csv", "K=1/J=2", "j=4/k=3"),
        {"k": BIGINT, "j": INT},
        [(1, 2), (3, 4)],
        partitions=("j", "k"),
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, partitions in capitals": FileCase(
        parted("csv", "K=1", "K=2"),
        {"k": BIGINT, "n": BIGINT},
        [(1, 0), (2, 1)],
        partitions=("k",),
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv, a partition of another type": FileCase(
        parted("csv", "k=1", "k=x"),
        {"k": INT, "n": BIGINT},
        "DAT-4110: /k=x/1.csv: directory k=x is not a INT",
        partitions=("k",),
        kind="csv",
    ),
    "csv, a file without a partition": FileCase(
        parted("csv", "k=1", "j=2"),
        {"k": INT, "n": BIGINT},
        "DAT-4110: /j=2/1.csv is in no directory k=..",
        partitions=("k",),
        kind="csv",
    ),
    "csv, many partitions": FileCase(
        parted("csv", *(f"k=v{number}" for number in range(70))),
        {"n": BIGINT, "k": STRING},
        [(number, f"v{number}") for number in range(70)],
        partitions=("k",),
        kind="csv",
        by="Spark",
    ),
    "csv, many partitions with odd names": FileCase(
        parted("csv", *(f"k=%20{number}" for number in range(70))),
        {"n": BIGINT, "k": STRING},
        [(number, f" {number}") for number in range(70)],
        partitions=("k",),
        kind="csv",
        by="nobody",
    ),
    "partitions with colons": FileCase(
        parted("parquet", "k=1:2", "k=x:%3A"),
        {"k": STRING, "n": BIGINT},
        [("1:2", 0), ("x::", 1)],
        partitions=("k",),
        by="DuckDB Spark",
    ),
    "partitions of nought": FileCase(
        parted("parquet", "k=%20-0.0", "k=0", "k=%200.0"),
        {"k": DOUBLE, "n": BIGINT},
        [(-0.0, 0), (0.0, 1), (0.0, 2)],
        partitions=("k",),
        by="DuckDB Spark",
    ),
    "partitions of every type": FileCase(
        parted(
            "parquet",
            "a=true/c=-1.5/d=1.50/f=2024-01-02/g=2024-01-02",
            "a=FALSE/c=-Infinity/d=7/f=1969-12-31/g=0001-01-01",
        ),
        {"a": BOOLEAN, "c": DOUBLE, "d": Decimal(10, 2), "f": TIMESTAMP, "g": TIMESTAMP_LTZ},
        [
            (True, -1.5, Exact("1.50"), datetime(2024, 1, 2), datetime(2024, 1, 2, tzinfo=UTC)),
            (False, float("-inf"), Exact("7.00"), datetime(1969, 12, 31), datetime(1, 1, 1, tzinfo=UTC)),
        ],
        partitions=("a", "c", "d", "f", "g"),
        by="DuckDB Spark",
    ),
    "partitions of every type, escaped": FileCase(
        parted(
            "parquet",
            "a=%20true/c=1.1%20/d=+1/f=2024-01-02 03%3A04%3A05.6/g=2024-01-02T03%3A04%3A05+02%3A00/n2=%209",
        ),
        {"a": BOOLEAN, "c": FLOAT, "d": Decimal(10, 2), "f": TIMESTAMP, "g": TIMESTAMP_LTZ, "n2": SMALLINT},
        [
            (
                True,
                1.100000023841858,
                Exact("1.00"),
                datetime(2024, 1, 2, 3, 4, 5, 600_000),
                datetime(2024, 1, 2, 1, 4, 5, tzinfo=UTC),
                9,
            )
        ],
        partitions=("a", "c", "d", "f", "g", "n2"),
        by="DuckDB Spark",
    ),
    "partitions before a column was added": FileCase(
        lambda directory: (
            parted("parquet", "k=1", "k=2", m=5)(directory),
            parted("parquet", "k=1", "k=3")(directory / "x"),
        )[0],
        {"k": INT, "m": BIGINT},
        [(1, 5), (2, 5), (1, None), (3, None)],
        {"source.missing-columns": "null"},
        partitions=("k",),
        by="DuckDB Spark",
    ),
    # columns that are not there
    "csv, a missing column": FileCase(
        csv("a,b\n1,1\n", "a\n2\n"),
        {"a": BIGINT, "b": BIGINT},
        "DAT-4203: /1.csv has no column b",
        kind="csv",
    ),
    "csv, a missing column that may be NULL": FileCase(
        csv("a,b\n1,x\n", "A\n2\n", "c\nx\n"),
        {"a": BIGINT, "b": STRING},
        [(1, "x"), (2, None), (None, None)],
        {"source.missing-columns": "null"},
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv without a header, missing columns that may be NULL": FileCase(
        csv("1,x\n", "2\n3\n"),
        {"a": BIGINT, "b": STRING},
        [(1, "x"), (2, None), (3, None)],
        {"source.missing-columns": "null", "csv.header": "false"},
        kind="csv",
        by="DuckDB Spark",
    ),
    "csv without a header, a record with fewer values": FileCase(
        csv("1,x\n2\n"),
        {"a": BIGINT, "b": STRING},
        "DAT-4201: /0.csv, row 2",
        {"source.missing-columns": "null", "csv.header": "false"},
        kind="csv",
    ),
    "csv without a header, a record with more values": FileCase(
        csv("1,x,y\n"),
        {"a": BIGINT, "b": STRING},
        "DAT-4201: /0.csv, row 1",
        {"source.missing-columns": "null", "csv.header": "false"},
        kind="csv",
    ),
    # nested columns
    "ROW and ARRAY": FileCase(
        parquet(
            {
                "r": pa.array(
                    [
                        {"a": "é", "b c": [1, None], "d": {"e": [{"f": "x"}, None]}},
                        {"a": None, "b c": None, "d": None},
                        None,
                    ]
                )
            }
        ),
        {
            "r": Row(
                (("a", STRING), ("b c", Array(BIGINT)), ("d", Row((("e", Array(Row((("f", STRING),)))),))))
            )
        },
        [
            ({"a": "é", "b c": [1, None], "d": {"e": [{"f": "x"}, None]}},),
            ({"a": None, "b c": None, "d": None},),
            (None,),
        ],
        by="DuckDB Spark",
    ),
    "ARRAY of ARRAY of smaller numbers": FileCase(
        parquet({"x": pa.array([[[1], None, []], None], pa.list_(pa.list_(pa.int16())))}),
        {"x": Array(Array(BIGINT))},
        [([[1], None, []],), (None,)],
        by="DuckDB Spark",
    ),
    "ARRAY with bytes that are no text": FileCase(
        parquet({"x": pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), _BROKEN)}),
        {"x": Array(STRING)},
        "DAT-4206: /0.parquet: a value of column x",
    ),
    "ROW with bytes that are no text": FileCase(
        parquet({"x": pa.StructArray.from_arrays([_BROKEN], ["a"])}),
        {"x": Row((("a", STRING),))},
        "DAT-4206: /0.parquet: a value of column x",
    ),
    "ROW with fields in another order": FileCase(
        parquet({"r": pa.array([{"B": 1, "a": 2, "c": 3}])}),
        {"r": Row((("a", BIGINT), ("b", BIGINT)))},
        [({"a": 2, "b": 1},)],
        by="nobody",
    ),
    "MAP": FileCase(
        parquet({"m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32()))}),
        {"m": Map(STRING, INT)},
        [([("a", 1)],), (None,)],
        by="nobody",
    ),
    "BYTES": FileCase(
        parquet({"b": pa.array([b"\xff\0", b"", None])}),
        {"b": BINARY},
        [(b"\xff\0",), (b"",), (None,)],
        by="DuckDB Spark",
    ),
}


def numbers(kind: pa.DataType) -> pa.Array:
    """The ends of an integer type, and what lies between."""
    bits = kind.bit_width - pa.types.is_signed_integer(kind)
    least = -(2**bits) if pa.types.is_signed_integer(kind) else 0
    return pa.array([least, 0, None, 2**bits - 1], kind)


def typed_columns() -> list[tuple[pa.Array, DataType]]:
    """Columns of every type a file may have, with each type it may be declared as: four rows each, one of
    them NULL.
    """
    with decimal.localcontext(decimal.Context(prec=76)):
        decimals = [
            (_decimals(f"{'9' * (p - s)}.{'9' * s} NULL 0 -1", p, s), p, s)
            for p, s in ((5, 2), (18, 3), (38, 10))
        ]
    integers = [
        numbers(kind)
        for kind in (
            pa.int8(),
            pa.int16(),
            pa.int32(),
            pa.int64(),
            pa.uint8(),
            pa.uint16(),
            pa.uint32(),
            pa.uint64(),
        )
    ]
    floats = [
        pa.array([1.5, None, -0.0, 3.4028234663852886e38], kind) for kind in (pa.float32(), pa.float64())
    ]
    texts = [
        pa.array(["", None, " x ", "é\n"], kind)
        for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
    ]
    days = [date(1, 1, 1), None, date(1582, 10, 10), date(9999, 12, 31)]
    moments = [datetime(1, 1, 1), None, datetime(1582, 10, 10, 1, 2, 3), datetime(9999, 12, 31, 23, 59, 59)]
    times = [
        pa.array(moments, pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us")
        for zone in (None, "UTC", "Asia/Tokyo")
    ]
    columns = [
        *integers,
        *floats,
        *(values for values, _, _ in decimals),
        *texts,
        pa.array([True, None, False, True]),
        pa.array(days),
        *times,
    ]
    kinds = [BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_LTZ]
    kinds += [Decimal(p, s) for p, s in ((3, 0), (5, 2), (12, 2), (18, 3), (20, 0), (21, 3), (38, 10))]
    return [(values, kind) for values in columns for kind in kinds]
