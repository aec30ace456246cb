"""ASOF JOIN and the latest row of a key by backends: the rows of a Top-1 over pairs and of the stream, for every
comparison, with NULLs and equal values; the plan is a nearest join.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.bounded.spark.java_runtime import find_java
from tests.harness.length import of_length

RULE = "nearest_rows_on_backends"
SIGNS = (">=", ">", "<=", "<")
NUMBERS = [None if n % 11 == 4 else n * 7 % 23 for n in range(60)]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, -2.25]
CONVERSIONS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "t": (pa.timestamp("us"), lambda n: n * 1_000_000),
    "d": (pa.decimal128(12, 2), lambda n: Decimal(n - 9) / 4),
    "wide": (pa.decimal128(38, 2), lambda n: Decimal(n - 9) * 10**20),
    "f": (pa.float64(), lambda n: FLOATS[n % 7]),
    "s": (pa.string(), lambda n: "é" * (n % 3) + str(n)),
}
ASOF = "SELECT a.id, b.id AS other, b.o FROM l AS a {kind} JOIN r AS b {condition}"
CONDITIONS = {
    "ASOF": "ON a.k = b.k AND a.{c} {sign} b.{c}",
    "ASOF LEFT": "MATCH_CONDITION (a.{c} {sign} b.{c}) ON a.k = b.k AND a.g = b.g",
}
LATEST = (
    "SELECT a.id, (SELECT b.o FROM r AS b WHERE b.k = a.k AND b.{c} {sign} a.{c}"
    " ORDER BY b.{c} {way}, b.o DESC NULLS LAST, b.id LIMIT 1) AS x FROM l AS a"
)


def side(odd: int) -> pa.Table:
    moved = [None if n is None else (n * 3 + odd) % 23 for n in NUMBERS]
    columns = {
        name: pa.array([None if n is None else convert(n) for n in moved], kind)
        for name, (kind, convert) in CONVERSIONS.items()
    }
    return pa.table(
        {
            "id": pa.array(range(60)),
            "k": pa.array([None if n % 13 == 6 else n % 3 for n in range(60)], pa.int32()),
            "g": pa.array([[0.0, -0.0, 1.0, None][n % 4] for n in range(60)]),
            "o": pa.array([None if n % 5 == odd else n % 4 for n in range(60)], pa.int32()),
            **columns,
        }
    )


def made(**settings: str) -> Session:
    session = Session(settings)
    for name, odd in (("l", 0), ("r", 1)):
        session.register(name, side(odd))
    return session


def rows(session: Session, query: str) -> Counter[str]:
    columns = session.execute(query).final_rows(600).columns
    return Counter(map(str, zip(*(column.to_pylist() for column in columns), strict=True)))


def queries() -> Iterator[str]:
    for number, (name, sign) in enumerate((name, sign) for name in CONVERSIONS for sign in SIGNS):
        kind = list(CONDITIONS)[number % 2]
        yield ASOF.format(kind=kind, condition=CONDITIONS[kind].format(c=name, sign=sign))
        way = "DESC" if sign in ("<", "<=") else "ASC"
        yield LATEST.format(c=name, sign=sign, way=way)


@pytest.fixture(scope="module")
def duckdb() -> Iterator[Session]:
    session = made(**{"bounded.backend": "duckdb"})
    yield session
    session.close()


@pytest.mark.longer
def test_duckdb_has_the_rows_of_a_top_1_and_of_the_stream(duckdb: Session) -> None:
    pairs = made(**{"bounded.backend": "duckdb", "optimizer.disabled-rules": RULE})
    stream = made(**{"execution.runtime-mode": "streaming", "execution.batch.max-rows": "7"})
    try:
        for number, query in enumerate(of_length(list(queries())[::7], list(queries()))):
            assert "NearestJoin" in "".join(rows(duckdb, f"EXPLAIN {query}")), query
            found = rows(duckdb, query)
            assert found == rows(pairs, query), query
            if number % 3 == 0:
                assert found == rows(stream, query), query
    finally:
        pairs.close()
        stream.close()


@pytest.mark.spark
@pytest.mark.longer
def test_spark_has_the_rows_of_duckdb(duckdb: Session) -> None:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    session = made(**{"bounded.backend": "spark"})
    try:
        for query in of_length(list(queries())[::34], list(queries())):
            assert rows(session, query) == rows(duckdb, query), query
    finally:
        session.close()
