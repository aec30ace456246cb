"""What Python functions give as VARIANT is JSON in any spelling: it is stored as every VARIANT is, and what is
no JSON is refused, as kernels read no other texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection

NESTED = "ROW<a ARRAY<VARIANT>, m MAP<STRING, VARIANT>>"


@penstock.udf(["STRING"], "VARIANT")
def by_column(texts: pa.Array) -> pa.Array:
    return texts


@penstock.udf(["STRING"], "VARIANT", mode="row")
def by_row(text: str | None) -> str | None:
    return text


@penstock.udf(["STRING"], NESTED, mode="row")
def nested(text: str | None) -> dict[str, Any]:
    return {"a": [text, None], "m": [("k", text)]}


@penstock.udaf(["STRING"], "VARIANT")
def first_of(offsets: np.ndarray, texts: pa.Array) -> pa.Array:
    # a group that is new has no rows before its first ones
    firsts = np.where(np.diff(offsets) > 0, offsets[:-1], 0)
    return texts.take(pa.array(firsts)) if len(texts) else pa.nulls(firsts.size, pa.string())


@penstock.udaf(["STRING"], "VARIANT", mode="row")
def one_of(texts: pa.Array) -> str | None:
    return texts[0].as_py() if len(texts) else None


@penstock.udtf(["STRING"], {"v": "VARIANT"}, mode="row")
def row_table(text: str | None) -> list[tuple[str | None]]:
    return [(text,)]


@penstock.udtf(["STRING"], {"v": "VARIANT"})
def column_table(texts: pa.Array) -> tuple[np.ndarray, pa.Array]:
    return np.arange(len(texts)), texts


@penstock.ptf({"v": "VARIANT"}, mode="row")
class Emits:
    """Emits each text as a VARIANT."""

    input = penstock.table_input()

    def process(self, ctx: Any, row: dict[str, Any]) -> None:
        ctx.emit(row["s"])


FUNCTIONS = (by_column, by_row, nested, first_of, one_of, row_table, column_table, Emits)
QUERIES = {
    "by column": "SELECT by_column(s) FROM t",
    "by row": "SELECT by_row(s) FROM t",
    "array": "SELECT nested(s).a[1] FROM t",
    "map": "SELECT nested(s).m['k'] FROM t",
    "aggregate": "SELECT first_of(s) FROM t GROUP BY k",
    "aggregate by row": "SELECT one_of(s) FROM t GROUP BY k",
    "table by row": "SELECT v FROM t, LATERAL TABLE(row_table(s)) AS x(v)",
    "table": "SELECT v FROM t, LATERAL TABLE(column_table(s)) AS x(v)",
    "process table": "SELECT v FROM Emits(TABLE t PARTITION BY k)",
}


@pytest.fixture
def connection() -> Iterator[Connection]:
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as made:
        for function in FUNCTIONS:
            made.create_function(function)
        yield made


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_any_spelling_of_a_value_is_the_one(connection: Connection, query: str) -> None:
    connection.register("t", pa.table({"k": [1], "s": [' {"b": 1.50, "a": "\\u00e9"}']}))
    assert connection.execute(query).fetchall() == [('{"a":"é","b":1.5}',)]


@pytest.mark.parametrize("text", ['{"b": 1,', '"abc', '{"a": 1, "a": 2}', ""])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_what_is_no_json_is_refused(connection: Connection, query: str, text: str) -> None:
    connection.register("t", pa.table({"k": [1], "s": [text]}))
    with pytest.raises(PenstockError, match=r"RUN-2011.*returned a VARIANT that is none"):
        connection.execute(query).fetchall()
