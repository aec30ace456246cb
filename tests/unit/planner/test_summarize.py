"""SUMMARIZE: a row of facts for each column of a table that ends; they are DuckDB's, where DuckDB does not
estimate.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S

MODES = ("streaming", "automatic")
SEEDS = int(of_length("8", "120"))
EXACT = "column_name, min, max, count, null_percentage"


def _table(seed: int) -> pa.Table:
    dice = random.Random(seed)
    rows = dice.choice((0, 1, 2, 40))

    def some(make: Any) -> list[Any]:
        return [None if dice.random() < 0.2 else make() for _ in range(rows)]

    return pa.table(
        {
            "n": pa.array(some(lambda: dice.randint(-9, 9)), pa.int64()),
            "x": pa.array(some(lambda: dice.randint(-80, 80) / 8), pa.float64()),
            "s": pa.array(some(lambda: dice.choice(("", "a", "it's", "zz"))), pa.string()),
            "d": pa.array(some(lambda: date(2024, 1, 1) + timedelta(days=dice.randint(0, 99))), pa.date32()),
            "ts": pa.array(
                some(lambda: datetime(2024, 1, 1) + timedelta(seconds=dice.randint(0, 9999))),
                pa.timestamp("us"),
            ),
            "b": pa.array(some(lambda: dice.random() < 0.5), pa.bool_()),
            "it's": pa.array(some(lambda: dice.randint(0, 3)), pa.int32()),
        }
    )


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb"})
    yield session
    session.close()


def _rows(session: Session, text: str) -> list[dict[str, Any]]:
    return session.execute(text).final_rows(PATIENCE_S).to_pylist()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_facts_are_those_of_duckdb(session: Session, seed: int) -> None:
    table = _table(seed)
    name = f"t{seed}"
    session.register(name, table, stream=False)
    connection = duckdb.connect()
    connection.register("t", table)
    expected = connection.execute(f"SELECT {EXACT}, avg, std FROM (SUMMARIZE t)").fetchall()
    different = [
        connection.execute(f'SELECT count(DISTINCT "{column}") FROM t').fetchall()[0][0]
        for column in table.column_names
    ]
    session.settings.set("execution.runtime-mode", MODES[seed % 2])
    found = _rows(session, f"SUMMARIZE {name}")
    for row, wanted, count in zip(found, expected, different, strict=True):
        assert tuple(row[key] for key in ("column_name", "min", "max", "count")) == wanted[:4]
        assert row["null_percentage"] == (wanted[4] if table.num_rows else None)
        assert row["approx_unique"] == count
        numeric = row["column_name"] in ("n", "x", "it's")
        for key, other in (("avg", wanted[5]), ("std", wanted[6])):
            value = float(other) if numeric and other is not None else None
            assert row[key] == value or math.isclose(row[key], value or 0.0, rel_tol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_quartiles_are_values_of_the_column(session: Session, mode: str) -> None:
    session.settings.set("execution.runtime-mode", mode)
    values = "(VALUES (1, DATE '2024-01-01', 'a'), (2, DATE '2024-01-02', 'b'), (9, NULL, 'c')) AS v(k, d, s)"
    rows = _rows(session, f"SUMMARIZE SELECT * FROM {values}")
    assert [(row["column_type"], row["q25"], row["q50"], row["q75"]) for row in rows] == [
        ("INT", "1", "2", "9"),
        ("DATE", "2024-01-01", "2024-01-01", "2024-01-02"),
        ("STRING", None, None, None),
    ]


def test_it_is_a_query_in_other_statements(session: Session) -> None:
    session.settings.set("execution.runtime-mode", "automatic")
    values = "SELECT 1 AS a, 'x' AS a, ARRAY[1] AS c"
    assert [row["column_name"] for row in _rows(session, f"SUMMARIZE {values}")] == ["a", "a", "c"]
    assert _rows(session, f"SELECT max(column_name) AS m FROM (SUMMARIZE {values}) AS s") == [{"m": "c"}]
    session.execute(f"CREATE VIEW summed AS SUMMARIZE {values}")
    assert len(_rows(session, "SELECT * FROM summed WHERE count = 1")) == 3
    assert len(_rows(session, "DESCRIBE SUMMARIZE summed")) == 12
    session.execute("EXPLAIN SUMMARIZE summed")
    assert _rows(session, "SELECT summarize FROM (SELECT 1 AS summarize) AS summarize") == [{"summarize": 1}]


def test_a_table_that_does_not_end_is_refused(session: Session) -> None:
    session.execute("CREATE TABLE endless (k INT) WITH ('connector' = 'datagen')")
    with pytest.raises(PenstockError) as refused:
        session.execute("SUMMARIZE endless")
    assert refused.value.code == "SQL-1601"
    assert "MIN(COLUMNS(*))" in str(refused.value.hint)
    session.execute("EXPLAIN SELECT COUNT(*), MIN(COLUMNS(*)), MAX(COLUMNS(*)) FROM endless")
