"""A subquery that is used as a value has one row at most: where no key says so, its rows are counted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session

SELECT = "SELECT o.id, (SELECT c.name FROM customers AS c WHERE c.id = o.customer) AS name FROM orders AS o"


def session_of(customers: list[int], runtime: str) -> Session:
    session = Session({"bounded.backend": "duckdb", "execution.runtime-mode": runtime})
    stream = runtime == "streaming"
    names = [f"c{n}" for n in range(len(customers))]
    session.register("customers", pa.table({"id": customers, "name": names}), stream=stream)
    session.register("orders", pa.table({"id": [1, 2, 3], "customer": [7, 8, None]}), stream=stream)
    return session


@pytest.mark.parametrize("runtime", ["streaming", "batch"])
def test_several_rows_that_no_outer_row_reads_are_none(runtime: str) -> None:
    session = session_of([7, 9, 9], runtime)
    rows = session.execute(SELECT).final_rows(60).to_pylist()
    session.close()
    assert sorted((row["id"], row["name"]) for row in rows) == [(1, "c0"), (2, None), (3, None)]


@pytest.mark.parametrize("runtime", ["streaming", "batch"])
@pytest.mark.parametrize(
    "query",
    [SELECT, "SELECT (SELECT id FROM customers) AS n", SELECT.replace("SELECT c.name", "SELECT NULL")],
)
def test_several_rows_fail_the_query(runtime: str, query: str) -> None:
    session = session_of([7, 7], runtime)
    with pytest.raises(PenstockError) as failed:
        session.execute(query).final_rows(60)
    session.close()
    assert failed.value.code == "RUN-2026"
    assert failed.value.hint


def test_values_without_an_order_are_refused() -> None:
    session = session_of([7], "batch")
    with pytest.raises(PenstockError, match="one row only") as refused:
        session.execute("SELECT (SELECT MAP[name, id] FROM customers) AS m")
    session.close()
    assert refused.value.code == "SQL-1086"
