"""Spark's errors as ours: condition, SQLSTATE, place, hint; asked of a real Spark, but for what would end
it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark.errors import spark_error, spark_failures
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.sessions import SESSIONS


@pytest.fixture(scope="module")
def session() -> Any:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    return SESSIONS.new("UTC")


def told(work: Callable[[], Any]) -> PenstockError:
    try:
        work()
    except spark_failures() as error:
        return spark_error(error)
    raise AssertionError("nothing was wrong")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "sqlstate", "detail", "hint"),
    [
        ("SELECT 1 / (id - id) FROM range(3)", "22012", "DIVIDE_BY_ZERO in 1 / (id - id)", "NULLIF"),
        (
            "SELECT CAST(concat('x', id) AS INT) FROM range(3)",
            "22018",
            "CAST_INVALID_INPUT in CAST(concat('x', id) AS INT)",
            "TRY_CAST",
        ),
        ("SELECT CAST(id * 9999999999 AS INT) FROM range(3)", "22003", "CAST_OVERFLOW", "TRY_CAST"),
        ("SELECT idd FROM range(3)", "42703", "UNRESOLVED_COLUMN.WITH_SUGGESTION in idd", "Spark knows `id`"),
        ("SELECT * FROM nope", "42P01", "TABLE_OR_VIEW_NOT_FOUND in nope", "SHOW TABLES"),
        ("SELECT * FROM parquet.`/no/such/place`", "42K03", "PATH_NOT_FOUND", "removed or renamed"),
        ("SELEC 1", "42601", "PARSE_SYNTAX_ERROR", ""),
    ],
)
def test_what_the_query_did_wrong(session: Any, text: str, sqlstate: str, detail: str, hint: str) -> None:
    error = told(lambda: session.sql(text).collect())
    assert (error.code, error.sqlstate, str(error.kind)) == ("BND-5003", sqlstate, "user")
    assert (error.detail or "").startswith(detail) and hint in (error.hint or "")
    assert "SQLSTATE" not in error.message and "[" not in error.message[:40] and "\n" not in error.message


def raising(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        raise ValueError("no good\nat all")
    yield from ()


def dying(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        os._exit(3)
    yield from ()


def eating(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        raise MemoryError("cannot allocate")
    yield from ()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("body", "code", "sqlstate", "message"),
    [
        (
            raising,
            "BND-5003",
            "38000",
            "the bounded query failed on Spark: Python raised ValueError: no good",
        ),
        (dying, "BND-5004", "58000", "a Python worker of Spark died"),
        (eating, "BND-5019", "53200", "a Python worker of Spark ran out of memory"),
    ],
)
def test_what_happens_in_a_python_worker(
    session: Any, body: Any, code: str, sqlstate: str, message: str
) -> None:
    error = told(session.range(3).mapInArrow(body, "id long").collect)
    assert (error.code, error.sqlstate, error.message) == (code, sqlstate, message)


def test_what_would_end_spark() -> None:
    words = "Exception in thread: java.lang.OutOfMemoryError: Java heap space"
    gone = spark_error(ConnectionRefusedError("refused"), words)
    assert (gone.code, gone.sqlstate, gone.detail) == (
        "BND-5019",
        "53200",
        words,
    ) and "spark.driver.memory" in str(gone.hint)
    assert spark_error(ConnectionRefusedError("refused"), "").code == "BND-5008"
    assert (
        spark_error(RuntimeError("Job aborted: java.lang.OutOfMemoryError: Java heap space")).code
        == "BND-5019"
    )
    assert spark_error(RuntimeError("something else"), words).code == "BND-5003", (
        "what is in the log may be old"
    )


def test_what_a_server_says() -> None:
    refused = spark_error(
        RuntimeError('status = StatusCode.UNAUTHENTICATED\n\tdetails = "Invalid authentication token"\n')
    )
    assert (refused.code, refused.message) == (
        "BND-5018",
        "the server of Spark Connect refuses us: Invalid authentication token",
    )
    assert spark_error(RuntimeError("status = StatusCode.UNAVAILABLE")).code == "BND-5008"
    assert (
        spark_error(RuntimeError("[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008")).code
        == "BND-5006"
    )
    lost = spark_error(
        RuntimeError("ConnectionError: PENSTOCK_UNREACHABLE 10.0.0.1:4000 from node-7: timed out\n")
    )
    assert (lost.code, lost.detail) == (
        "BND-5017",
        "on node-7: timed out",
    ) and "10.0.0.1:4000" in lost.message
