"""The bounded backend on Spark: one virtual machine for the module, answers equal to DuckDB's and to our
own kernels'.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INT,
    STRING,
    TIME,
    YEAR_MONTH_INTERVAL,
)
from penstock.engine.api.operator import Services
from penstock.engine.bounded.backend import BoundedBackend
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.engine.storage.staged_rows import StagedRows
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from tests.harness.length import briefly
from tests.unit.engine.bounded.functions import differences, register
from tests.unit.engine.bounded.plans import (
    ORDERED,
    answer,
    call,
    col,
    files,
    flights,
    lit,
    multiset,
    plans,
)
from tests.unit.engine.bounded.test_duckdb import check_divisions, check_formats
from tests.unit.engine.expressions.spark_cases import FAMILIES

pytestmark = pytest.mark.spark
REGISTERED = RegisteredTables()
PLANS = plans()
ELSEWHERE = ("tumble", "hop", "cumulate", "inner join", "right join", "semi join")
"""At length only: parts of "sorted join", "percent" and "attached", or turned round from what stays."""


@pytest.fixture(scope="module")
def backends() -> Iterator[BoundedBackends]:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    made = BoundedBackends(Services(REGISTERED))
    yield made
    made.close()


@pytest.fixture(scope="module")
def spark(backends: BoundedBackends) -> BoundedBackend:
    return backends.backend("spark")


@pytest.mark.parametrize("name", briefly(PLANS, PLANS.keys() - set(ELSEWHERE)))
def test_spark_and_duckdb_agree(backends: BoundedBackends, name: str) -> None:
    theirs, ours = (answer(backends.backend(which), PLANS[name]) for which in ("spark", "duckdb"))
    if name in ORDERED:
        assert theirs == ours
    assert multiset(theirs) == multiset(ours)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_functions_mean_what_ours_mean(spark: BoundedBackend, family: str) -> None:
    assert differences(spark, register(REGISTERED), family) == ([], [])


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_file_formats(spark: BoundedBackend, tmp_path: Path, kind: str) -> None:
    check_formats(spark, tmp_path, kind)


@pytest.mark.parametrize("function", ["divide", "mod"])
def test_divisions_of_decimals(spark: BoundedBackend, function: str) -> None:
    check_divisions(spark, REGISTERED, function)


def test_zstd_files_and_bad_records(spark: BoundedBackend, tmp_path: Path) -> None:
    with pa.CompressedOutputStream(str(tmp_path / "t.csv.zst"), "zstd") as sink:
        sink.write(b"n,s\n1,a\nx,b\n3,c\n")
    columns = [("n", INT), ("s", STRING)]
    skipping = files("t", tmp_path / "t.csv.zst", columns, **{"on-error": "skip"})
    assert answer(spark, Scan(skipping, (0, 1))) == [(1, "a"), (3, "c")]
    with pytest.raises(PenstockError) as caught:
        answer(spark, Scan(files("t", tmp_path / "t.csv.zst", columns), (0, 1)))
    assert caught.value.code == "DAT-4201" and "column n: 'x' is not a valid INT" in caught.value.message


def test_registered_tables_of_every_kind(spark: BoundedBackend) -> None:
    kinds = (("i", DAY_TIME_INTERVAL), ("m", YEAR_MONTH_INTERVAL), ("c", TIME), ("n", BIGINT))
    schema = Schema(tuple(Field(name, kind) for name, kind in kinds))
    arrays = [
        pa.array([-90_000_000, None], pa.duration("us")),
        pa.array([14, None], pa.int32()),
        pa.array([1, None], pa.time64("us")),
        pa.array([5, 6]),
    ]
    table = pa.table(arrays, schema=schema.to_arrow())
    REGISTERED.register("kinds", table)
    (batch,) = spark.run(
        Scan(
            CatalogTable("kinds", schema, schema, {"connector": "registered", "name": "kinds"}), (0, 1, 2, 3)
        )
    )
    assert batch.to_pydict() == table.to_pydict()


def test_errors_of_the_data_are_the_users(spark: BoundedBackend) -> None:
    scan = Scan(
        files(
            "airlines",
            flights().table.options["path"],
            [("year", INT)],
            format="csv",
            **{"csv.null-literal": "NA"},
        ),
        (0,),
    )
    zero = call(
        "divide", DOUBLE, lit(1.0, DOUBLE), call("subtract", DOUBLE, lit(1.0, DOUBLE), lit(1.0, DOUBLE))
    )
    with pytest.raises(PenstockError) as caught:
        answer(spark, Project(scan, (zero,), ("z",)))
    error = caught.value
    assert (error.code, error.sqlstate, str(error.kind)) == ("RUN-2001", "22012", "user")
    assert len(error.message) < 400 and "\n" not in error.message


def test_programs_started_later_have_a_spark_of_their_own(spark: BoundedBackend) -> None:
    """What names a gateway to PySpark would make of ours the Spark they were submitted to."""
    assert answer(spark, PLANS["no columns"])
    assert not [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")]


def test_cancel_ends_the_job_and_the_next_query_runs(spark: BoundedBackend) -> None:
    scan = flights()
    result = spark.run(Filter(scan, call("is_not_null", BOOLEAN, col(scan, 0))))
    assert next(iter(result)).num_rows > 0
    result.close()
    assert answer(spark, PLANS["no columns"]) == [(27004,)]


def test_staged_rows_of_a_large_result(spark: BoundedBackend, tmp_path: Path) -> None:
    scan = flights()
    batches = list(spark.run(scan, staging_dir=tmp_path / "rows"))
    staged = StagedRows(tmp_path / "rows")
    assert (
        sum(batch.num_rows for batch in batches) == sum(batch.num_rows for batch in staged.batches()) == 27004
    )
    assert [batch.column(9).to_pylist()[:3] for batch in staged.batches()] == [
        batch.column(9).to_pylist()[:3] for batch in batches
    ]
