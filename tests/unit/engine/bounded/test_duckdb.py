"""The bounded backend on DuckDB: flights, functions, file formats, errors, cancel, staged results."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
)
from penstock.engine.api.operator import Services
from penstock.engine.bounded.backend import BoundedBackend
from penstock.engine.bounded.duckdb import SharedConnection, connect, progress_of
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.engine.storage.staged_rows import StagedRows
from penstock.planner.expressions.nodes import Cast
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from tests.harness.patience import PATIENCE_S
from tests.unit.engine.bounded.functions import differences, register
from tests.unit.engine.bounded.plans import (
    agg,
    airlines,
    answer,
    call,
    col,
    files,
    lit,
    multiset,
    plans,
)
from tests.unit.engine.expressions.calls import call as checked_call
from tests.unit.engine.expressions.calls import run
from tests.unit.engine.expressions.spark_cases import FAMILIES

REGISTERED = RegisteredTables()
PLANS = plans()
CANNOT_SAY = {
    "arithmetic": ["w + w", "w * 2"],
    "strings": ["initcap(s)", "repeat(s, n)", "lpad(s, n)", "rpad(s, n)", "space(n)"],
    "casts": ["CAST(t - v AS STRING)"],
}


@pytest.fixture(scope="module")
def duckdb() -> BoundedBackend:
    return BoundedBackends(Services(REGISTERED)).backend("duckdb")


@pytest.mark.parametrize("name", list(PLANS))
def test_plans_run(duckdb: BoundedBackend, name: str) -> None:
    rows = answer(duckdb, PLANS[name])
    assert (len(rows) > 0) == (name != "no rows")


def test_flights_in_january(duckdb: BoundedBackend) -> None:
    assert answer(duckdb, PLANS["no columns"]) == [(27004,)]
    tumble = answer(duckdb, PLANS["tumble"])
    assert sum(row[2] for row in tumble) == 27004
    assert sum(row[3] for row in tumble) == 521
    hops = answer(duckdb, PLANS["hop"])
    assert sum(row[2] for row in hops) == 2 * 27004
    assert answer(duckdb, PLANS["cross"]) == [(256,)]
    assert answer(duckdb, PLANS["limit"]) == [(5,)]


def test_orders_hold(duckdb: BoundedBackend) -> None:
    rows = answer(duckdb, PLANS["sorted join"])
    assert [row[6] for row in rows] == sorted(row[6] for row in rows)
    assert [row[2] for row in answer(duckdb, PLANS["percent"])] == sorted(
        (r[2] for r in answer(duckdb, PLANS["percent"])), reverse=True
    )


@pytest.mark.parametrize("family", list(FAMILIES))
def test_functions_mean_what_ours_mean(duckdb: BoundedBackend, family: str) -> None:
    wrong, refused = differences(duckdb, register(REGISTERED), family)
    assert not wrong
    assert [text for text in refused if "'Q'" not in text] == CANNOT_SAY.get(family, [])


KINDS = [
    ("b", BOOLEAN),
    ("n", INT),
    ("x", DOUBLE),
    ("s", STRING),
    ("d", DATE),
    ("t", TIMESTAMP),
    ("z", TIMESTAMP_LTZ),
]
ROWS = [
    (True, 1, 1.5, "a,b", "2024-01-02", "2024-01-02 03:04:05.5", "2024-01-02T03:04:05Z"),
    (None, None, None, None, None, None, None),
    (False, -7, float("-inf"), 'say "x"', "1969-12-31", "1969-12-31 23:59:59", "2024-01-02 03:04:05+01:30"),
]


def write_table(directory: Path, kind: str) -> CatalogTable:
    """The rows above in two files of a format, with hidden files that must not be read."""
    directory.mkdir()
    if kind == "csv":
        lines = ["n,extra,b,x,s,d,t,z"]
        for b, n, x, s, d, t, z in ROWS:
            quoted = "NA" if s is None else '"' + s.replace('"', '""') + '"'
            lines.append(
                ",".join(
                    "NA" if v is None else str(v).lower() if isinstance(v, bool) else str(v)
                    for v in (n, "e", b, x)
                )
                + f",{quoted},{d or 'NA'},{t or ''},{z or ''}"
            )
        text = "\n".join(lines) + "\n"
        (directory / "a.csv").write_text(text.replace("-inf", "-Infinity"))
        with gzip.open(directory / "b.csv.gz", "wt") as sink:
            sink.write("n,extra,b,x,s,d,t,z\n")
        options = {"csv.null-literal": "NA"}
    elif kind == "json":
        names = [name for name, _ in KINDS]
        objects = [
            {k: v for k, v in zip(names, row, strict=True) if v is not None and v != float("-inf")}
            for row in ROWS
        ]
        (directory / "a.jsonl").write_text("\n".join(json.dumps(o) for o in objects) + "\n")
        options = {}
    else:
        texts = [dict(zip([name for name, _ in KINDS], row, strict=True)) for row in ROWS]
        table = pa.table({name: pa.array([t[name] for t in texts]) for name in ("b", "n", "x", "s")})
        for index, name in ((4, "d"), (5, "t")):
            kind_of = pa.date32() if name == "d" else pa.timestamp("us")
            table = table.append_column(
                name, pa.array([row[index] for row in ROWS]).cast(pa.timestamp("us")).cast(kind_of)
            )
        instants = pa.array([1704164645000000, None, 1704159245000000]).cast(pa.timestamp("us", "UTC"))
        pq.write_table(table.append_column("z", instants), directory / "a.parquet")
        options = {}
    (directory / "_staged.tmp").write_text("nothing that can be read")
    (directory / f".hidden.{kind}").write_text("nothing that can be read")
    return files("t", directory, KINDS, format=kind, **options)


def check_formats(backend: BoundedBackend, directory: Path, kind: str) -> None:
    table = write_table(directory / kind, kind)
    rows = answer(backend, Scan(table, (1, 3, 6, 0, 2, 4, 5)))
    first = next(row for row in rows if row[0] == 1)
    assert first[1] == "a,b" and first[3] is True and first[4] == 1.5
    assert (
        str(first[2]) == "2024-01-02 03:04:05+00:00"
        and str(first[5]) == "2024-01-02"
        and str(first[6]) == "2024-01-02 03:04:05.500000"
    )
    third = next(row for row in rows if row[0] == -7)
    assert str(third[2]) == "2024-01-02 01:34:05+00:00" and third[1] == 'say "x"'
    assert len(rows) == 3 and (None,) * 7 in rows


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_file_formats(duckdb: BoundedBackend, tmp_path: Path, kind: str) -> None:
    check_formats(duckdb, tmp_path, kind)


def test_bad_records_fail_or_are_left_out(duckdb: BoundedBackend, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,s\n1,a\nx,b\n3,c\n")
    with pytest.raises(PenstockError) as caught:
        answer(duckdb, Scan(files("t", tmp_path / "t.csv", [("n", INT), ("s", STRING)]), (0, 1)))
    assert (
        caught.value.code == "DAT-4201"
        and "row 2 (byte 8): column n: 'x' is not a valid INT" in caught.value.message
    )
    skipping = files("t", tmp_path / "t.csv", [("n", INT), ("s", STRING)], **{"on-error": "skip"})
    assert answer(duckdb, Scan(skipping, (0, 1))) == [(1, "a"), (3, "c")]
    assert answer(duckdb, Scan(skipping, (1,))) == [("a",), ("c",)]


def test_a_column_that_is_not_there(duckdb: BoundedBackend, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("number,s\n1,a\n")
    with pytest.raises(PenstockError, match="has no column numbr") as caught:
        answer(duckdb, Scan(files("t", tmp_path / "t.csv", [("numbr", INT), ("s", STRING)]), (0,)))
    assert caught.value.hint == 'did you mean "number"?'


def test_registered_tables_of_every_kind(duckdb: BoundedBackend) -> None:
    kinds = (("i", DAY_TIME_INTERVAL), ("m", YEAR_MONTH_INTERVAL), ("n", BIGINT))
    schema = Schema(tuple(Field(name, kind) for name, kind in kinds))
    table = pa.table(
        [pa.array([90_000_000], pa.duration("us")), pa.array([14], pa.int32()), pa.array([5])],
        schema=schema.to_arrow(),
    )
    REGISTERED.register("kinds", table)
    scan = Scan(
        CatalogTable("kinds", schema, schema, {"connector": "registered", "name": "kinds"}), (0, 1, 2)
    )
    (batch,) = duckdb.run(scan)
    assert batch.to_pydict() == table.to_pydict()
    REGISTERED.register("once", iter([{"n": n} for n in range(3000)]))
    numbers = Schema((Field("n", BIGINT),))
    scan = Scan(CatalogTable("once", numbers, numbers, {"connector": "registered", "name": "once"}), (0,))
    assert multiset(
        answer(duckdb, Filter(scan, call("less", BOOLEAN, col(scan, 0), lit(10, BIGINT))))
    ) == Counter({(n,): 1 for n in range(10)})


def test_errors_of_the_data_are_the_users(duckdb: BoundedBackend) -> None:
    scan = PLANS["tumble"]
    zero = call("divide", DOUBLE, lit(1.0, DOUBLE), lit(0.0, DOUBLE))
    with pytest.raises(PenstockError) as caught:
        answer(duckdb, Project(scan, (zero,), ("z",)))
    assert (
        caught.value.code == "RUN-2001"
        and str(caught.value.kind) == "user"
        and "division by zero" in caught.value.message
    )


def test_progress_is_known_until_the_connection_is_closed() -> None:
    connection = connect("UTC")
    connection.sql("SELECT sum(range) FROM range(1000000)").fetchall()
    known = progress_of(connection)
    assert known is None or known.startswith("DuckDB: ")
    connection.close()
    assert progress_of(connection) is None


def test_cancel_ends_a_query(duckdb: BoundedBackend) -> None:
    result = duckdb.run(PLANS["twice"])
    result.close()
    assert result.ended
    assert result.poll() is None


def test_staged_rows_read_again_from_any_batch(duckdb: BoundedBackend, tmp_path: Path) -> None:
    batches = list(duckdb.run(PLANS["hop"], staging_dir=tmp_path / "rows"))
    staged = StagedRows(tmp_path / "rows")
    assert [batch.to_pylist() for batch in staged.batches()] == [batch.to_pylist() for batch in batches]
    next((tmp_path / "rows").glob("*.arrow")).write_bytes(b"torn")
    with pytest.raises(PenstockError) as caught:
        list(staged.batches())
    assert caught.value.code == "BND-5201"


def test_an_unknown_backend() -> None:
    with pytest.raises(PenstockError) as caught:
        BoundedBackends(Services()).backend("sprak")
    assert caught.value.code == "BND-5000" and caught.value.hint == 'did you mean "spark"?'


DECIMALS = [(3, 1), (10, 3), (18, 0), (18, 3), (20, 2), (38, 2), (38, 0)]


@pytest.mark.parametrize("function", ["add", "subtract", "multiply"])
def test_decimals_have_all_their_digits(duckdb: BoundedBackend, function: str) -> None:
    """The largest values of each type, of 64 bits too, and an integer: what is no fault of ours is none of
    DuckDB's.
    """
    kinds: list[DataType] = [*(Decimal(p, s) for p, s in DECIMALS), INT]
    rows = pa.record_batch(
        [
            pa.array([f"{sign}{'9' * (p - s)}.{'9' * s}" for sign in ("", "-")] + [None]).cast(
                pa.decimal128(p, s)
            )
            for p, s in DECIMALS
        ]
        + [pa.array([2**31 - 1, -(2**31), None], pa.int32())],
        names=[f"x{i}" for i in range(len(kinds))],
    )
    schema = Schema(tuple(Field(name, kind) for name, kind in zip(rows.schema.names, kinds, strict=True)))
    REGISTERED.register(f"decimals_{function}", pa.Table.from_batches([rows]))
    scan = Scan(
        CatalogTable("d", schema, schema, {"connector": "registered", "name": f"decimals_{function}"}),
        tuple(range(len(kinds))),
    )
    pairs = [
        checked_call(function, col(scan, left), col(scan, right))
        for left in range(len(kinds))
        for right in range(len(DECIMALS))
    ]
    fits, faults = [], []
    for expression in pairs:
        try:
            fits.append((expression, run(expression, rows).to_pylist()))
        except PenstockError as error:
            assert error.code == "RUN-2002"
            faults.append(expression)
    assert len(fits) > 25 and len(faults) > 2
    plan = Project(
        scan, tuple(expression for expression, _ in fits), tuple(f"v{i}" for i in range(len(fits)))
    )
    theirs = list(zip(*answer(duckdb, plan), strict=True))
    wrong = {str(e): (list(a), b) for (e, b), a in zip(fits, theirs, strict=True) if list(a) != b}
    assert not wrong
    for expression in faults[::5]:
        with pytest.raises(PenstockError, match="RUN-2002"):
            answer(duckdb, Project(scan, (expression,), ("v",)))


def check_divisions(backend: BoundedBackend, registered: RegisteredTables, function: str) -> None:
    """Quotients and rests of the largest, the smallest and middling decimals of each type: ours, whatever
    128 bits hold on the way.
    """
    largest = [f"{'9' * (p - s)}.{'9' * s}" for p, s in DECIMALS]
    smallest = [f"0.{'7':>0{s}}" if s else "7" for _, s in DECIMALS]
    middling = [f"{'8' * ((p - s + 1) // 2)}.{'5' * s}" for p, s in DECIMALS]
    columns: list[pa.Array] = []
    for (p, s), big, small, some in zip(DECIMALS, largest, smallest, middling, strict=True):
        columns.append(
            pa.array([big, f"-{big}", big, f"-{big}", small, f"-{small}", None, small, some]).cast(
                pa.decimal128(p, s)
            )
        )
        columns.append(
            pa.array([big, big, f"-{some}", some, big, f"-{some}", big, None, some]).cast(pa.decimal128(p, s))
        )
    rows = pa.record_batch(columns, names=[f"x{i}" for i in range(len(columns))])
    schema = Schema(
        tuple(Field(name, Decimal(*DECIMALS[i // 2])) for i, name in enumerate(rows.schema.names))
    )
    registered.register(f"decimals_{function}", pa.Table.from_batches([rows]))
    scan = Scan(
        CatalogTable("d", schema, schema, {"connector": "registered", "name": f"decimals_{function}"}),
        tuple(range(len(columns))),
    )
    fits, faults = [], []
    for left in range(0, len(columns), 2):
        for right in range(1, len(columns), 2):
            expression = checked_call(function, col(scan, left), col(scan, right))
            try:
                fits.append((expression, run(expression, rows).to_pylist()))
            except PenstockError as error:
                assert error.code == "RUN-2002"
                faults.append(expression)
    assert len(fits) >= 25
    plan = Project(
        scan, tuple(expression for expression, _ in fits), tuple(f"v{i}" for i in range(len(fits)))
    )
    theirs = list(zip(*answer(backend, plan), strict=True))
    assert not {str(e): (a, b) for (e, a), b in zip(fits, theirs, strict=True) if a != list(b)}
    for expression in faults[::6]:
        with pytest.raises(PenstockError, match="RUN-2002"):
            answer(backend, Project(scan, (expression,), ("v",)))


@pytest.mark.parametrize("function", ["divide", "div", "mod", "pmod"])
def test_divisions_of_decimals(duckdb: BoundedBackend, function: str) -> None:
    check_divisions(duckdb, REGISTERED, function)


def test_an_average_whose_sum_has_no_digit_left_for_more(duckdb: BoundedBackend) -> None:
    kind = Decimal(38, 36)
    schema = Schema((Field("x", kind),))
    REGISTERED.register("means", pa.table({"x": pa.array(["0.9", "0.9", "0.8"]).cast(pa.decimal128(38, 36))}))
    scan = Scan(CatalogTable("means", schema, schema, {"connector": "registered", "name": "means"}), (0,))
    (mean,) = answer(duckdb, Aggregate(scan, (), (agg("avg", Decimal(38, 38), col(scan, 0)),), ("mean",)))
    assert str(mean[0]) == "0.86666666666666666666666666666666666667"


def test_the_text_of_a_query_is_no_fault_of_it(duckdb: BoundedBackend) -> None:
    """DuckDB shows the query beside an error, and with it the words in which the guard of a division would
    fail.
    """
    large = Cast(INT, False, arg=lit(10**12, BIGINT), safe=False)
    with pytest.raises(PenstockError, match=r"RUN-2002.*1000000000000 out of range for INT"):
        answer(duckdb, Project(airlines(), (call("div", BIGINT, large, lit(7, INT)),), ("v",)))


def test_a_product_that_is_rounded_is_not_left_to_duckdb(duckdb: BoundedBackend) -> None:
    """Its digits before rounding may be more than the 38 DuckDB has."""
    schema = Schema((Field("x", Decimal(38, 10)),))
    scan = Scan(CatalogTable("wide", schema, schema, {"connector": "registered", "name": "wide"}), (0,))
    with pytest.raises(PenstockError, match="BND-5101"):
        duckdb.explain(Project(scan, (checked_call("multiply", col(scan, 0), col(scan, 0)),), ("v",)))


class _Watched:
    """A connection that stays inside ``interrupt`` until it may leave."""

    def __init__(self) -> None:
        self.inside, self.may_leave = threading.Event(), threading.Event()
        self.is_closed = self.was_closed_under_a_call = False

    def interrupt(self) -> None:
        assert not self.is_closed
        self.inside.set()
        self.may_leave.wait(PATIENCE_S)
        self.was_closed_under_a_call = self.is_closed

    def close(self) -> None:
        self.is_closed = True


def test_a_connection_is_not_closed_under_a_call_of_another_thread() -> None:
    watched = _Watched()
    shared = SharedConnection(watched)
    interrupting, closing = threading.Thread(target=shared.interrupt), threading.Thread(target=shared.close)
    interrupting.start()
    assert watched.inside.wait(PATIENCE_S)
    closing.start()
    closing.join(0.02)
    watched.may_leave.set()
    interrupting.join()
    closing.join()
    assert watched.is_closed and not watched.was_closed_under_a_call
    shared.interrupt()
    assert shared.progress() is None


def test_a_subplan_that_a_query_has_twice_keeps_its_columns() -> None:
    """DuckDB 2.0.1 took the key of the other side of a join of a table to itself."""
    connection = connect("UTC")
    connection.execute("CREATE TABLE c AS SELECT 1 AS k, 2 AS v, 'b' AS s, 5 AS ts")
    joined = "(SELECT r.s, l.k AS k, l.v AS v FROM c AS l LEFT JOIN c AS r ON l.k = r.k AND l.ts > r.ts)"
    found = connection.execute(f"SELECT s, k FROM {joined} UNION ALL SELECT s, v FROM {joined}").fetchall()
    assert found == [(None, 1), (None, 2)]
