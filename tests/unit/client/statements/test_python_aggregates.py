"""Python aggregate and table functions: over changes, in windows, from checkpoints; every mistake told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import penstock
from penstock.client.connection import Connection
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.functions.python_functions import PythonTableRows
from tests.harness.patience import PATIENCE_S
from tests.unit.client import program_functions as program

ROWS = pa.table(
    {
        "k": [1, 1, 2, 2, 3],
        "x": [1.0, 2.0, 3.0, None, 5.0],
        "w": [1.0, 3.0, 1.0, 1.0, 2.0],
        "s": ["a bb", "ccc", None, "d e f", ""],
        "n": [2, 0, 1, None, 3],
    }
)
QUERIES: dict[str, list[tuple[object, ...]]] = {
    "SELECT k, weighted_mean(x, w), longest(s), longest(s) FILTER (WHERE x > 1) FROM t GROUP BY k": [
        (1, 1.75, "a bb", "ccc"),
        (2, 1.5, "d e f", None),
        (3, 5.0, "", ""),
    ],
    "SELECT longest(DISTINCT s) FROM t HAVING longest(s) <> 'q'": [("d e f",)],
    "SELECT m, COUNT(*), longest(s) FROM (SELECT k % 2 AS m, MAX(s) AS s FROM t GROUP BY k) GROUP BY m": [
        (0, 1, "d e f"),
        (1, 2, "ccc"),
    ],
    "SELECT (SELECT longest(s) FROM t) AS l": [("d e f",)],
    # functions that cannot take a group without rows, and one column as two arguments
    "SELECT k, sum_of_products(x, x), first_text(s) FROM t GROUP BY k": [
        (1, 5.0, "a bb"),
        (2, 9.0, None),
        (3, 25.0, ""),
    ],
    "SELECT k, sum_of_products(x, w) FILTER (WHERE x > 2), first_text(s) FILTER (WHERE x < 0) FROM t GROUP BY k": [
        (1, None, None),
        (2, 3.0, None),
        (3, 10.0, None),
    ],
    "SELECT COUNT(*), sum_of_products(x, x), first_text(s) FROM t WHERE k > 100": [(0, None, None)],
    "SELECT k, longest(s) OVER (PARTITION BY k ORDER BY x) FROM t WHERE k = 1": [(1, "a bb"), (1, "a bb")],
    "SELECT k, word, length FROM t, LATERAL TABLE(words(s)) AS l(word, length) WHERE length > 1": [
        (1, "bb", 2),
        (1, "ccc", 3),
    ],
    "SELECT k, i, o FROM t LEFT JOIN LATERAL upto(n) WITH ORDINALITY AS l(i, o) ON TRUE WHERE k < 3": [
        (1, 0, 1),
        (1, 1, 2),
        (1, None, None),
        (2, 0, 1),
        (2, None, None),
    ],
    "SELECT n, word FROM (SELECT MAX(s) AS s FROM t), LATERAL TABLE(words(s)) AS l(word, c), LATERAL TABLE(two()) AS m(n)": [
        (n, word) for n in (1, 2) for word in "def"
    ],
}


def connection(**settings: str) -> Connection:
    made = penstock.connect(settings=settings)
    made.register("t", ROWS)
    for function in (
        program.weighted_mean,
        program.longest,
        program.sum_of_products,
        program.first_text,
        program.failing,
        program.rows_seen,
        program.too_few,
        program.words,
        program.upto,
        program.backwards,
        program.two,
    ):
        made.create_function(function)
    return made


@pytest.fixture(scope="module")
def ours() -> Iterator[Connection]:
    with connection(**{"execution.runtime-mode": "streaming", "parallelism.default": "2"}) as made:
        yield made


def answer(made: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(
        made.execute(query).fetchall(), key=lambda row: [(value is None, str(value)) for value in row]
    )


@pytest.mark.parametrize("query", list(QUERIES))
def test_answers(ours: Connection, query: str) -> None:
    expected = sorted(QUERIES[query], key=lambda row: [(value is None, str(value)) for value in row])
    assert answer(ours, query) == expected


def test_bounded_tables() -> None:
    with connection(**{"bounded.backend": "duckdb"}) as made:
        for query, expected in QUERIES.items():
            assert answer(made, query) == sorted(
                expected, key=lambda row: [(value is None, str(value)) for value in row]
            ), query


def test_answers_do_not_depend_on_the_size_of_pieces(
    ours: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [query for query in QUERIES if "LATERAL" in query]
    expected = [answer(ours, query) for query in queries]
    for rows, size in ((1, 1 << 20), (3, 1 << 20), (1 << 16, 8)):
        monkeypatch.setattr(LIMITS, "piece_rows", rows)
        monkeypatch.setattr(LIMITS, "piece_bytes", size)
        assert [answer(ours, query) for query in queries] == expected


def test_a_generator_may_be_endless(ours: Connection) -> None:
    @penstock.udtf(["BIGINT"], {"i": "BIGINT", "text": "STRING"}, mode="row")
    def endless(number: int) -> Iterator[tuple[int, str]]:
        while True:
            number += 1
            yield number, "x" * 1_000

    ours.create_function(endless)
    assert ours.execute(
        "SELECT k, i FROM t, LATERAL TABLE(endless(k)) AS l(i, c) WHERE i > 200000 AND k = 1"
    ).fetchmany(2) == [
        (1, 200_001),
        (1, 200_002),
    ]


def test_a_generator_is_asked_for_no_more_than_a_piece() -> None:
    asked = []

    @penstock.udtf(["INT"], {"text": "STRING"}, mode="row")
    def texts(length: int) -> Iterator[str]:
        for number in range(1_000_000):
            asked.append(number)
            yield "x" * length

    for length, most in ((10, LIMITS.piece_rows), (100_000, LIMITS.piece_bytes // 100_000 + 256)):
        asked.clear()
        parents, (column,) = next(PythonTableRows(texts).pieces([pa.array([length, length])], 2))
        assert len(asked) == len(column) == parents.size <= most
        assert not parents.any()


def test_a_function_of_columns_is_called_with_as_many_rows_as_give_a_piece() -> None:
    sizes = []

    @penstock.udtf(["INT"], {"i": "BIGINT"})
    def hundredfold(number: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(len(number))
        return np.repeat(np.arange(len(number)), 100), np.repeat(number.to_numpy(), 100)

    rows = PythonTableRows(hundredfold)
    given = list(rows.pieces([pa.array(range(3_000))], 3_000))
    assert sum(sizes) == 3_000 and max(parents.size for parents, _ in given[1:]) <= LIMITS.piece_rows
    assert np.array_equal(np.concatenate([parents for parents, _ in given]), np.repeat(np.arange(3_000), 100))
    assert all(np.array_equal(parents, column.to_numpy()) for parents, (column,) in given)
    sizes.clear()
    list(rows.pieces([pa.array(range(500))], 500))
    assert sizes == [500], "what was learnt holds for the next batch"


SPARKS = [query for query in QUERIES if "LATERAL" not in query]
MORE = {
    "SELECT COUNT(*), longest(s) FROM t WHERE k > 100": [(0, None)],
    "SELECT k, rows_seen(x, n) FROM t GROUP BY k": [(1, "1 2|2 0"), (2, "None None|3 1"), (3, "5 3")],
    "SELECT COUNT(*), rows_seen(DISTINCT k % 2, 0) FROM t": [(5, "0 0|1 0")],
}


def explained(made: Connection, query: str) -> str:
    return "\n".join(line for (line,) in made.execute(f"EXPLAIN PHYSICAL {query}").fetchall())


@pytest.mark.spark
def test_aggregates_run_in_spark() -> None:
    """As Arrow functions of Spark's workers, one call for many groups: the answers of our runtime, NULLs
    and order of rows included.
    """
    try:
        find_java()
    except penstock.Error as error:
        pytest.skip(error.message)
    with (
        connection(**{"bounded.backend": "spark"}) as made,
        connection(**{"execution.runtime-mode": "streaming"}) as stream,
    ):
        for query in [*SPARKS, *MORE]:
            expected = sorted(
                QUERIES.get(query) or MORE[query],
                key=lambda row: [(value is None, str(value)) for value in row],
            )
            assert answer(made, query) == expected == answer(stream, query), query
        assert "PENSTOCK_PYTHON_LONGEST(ARRAY_SORT(" in explained(
            made, SPARKS[0]
        ) and "chain 0" not in explained(made, SPARKS[0])
        filtered = "SELECT k, longest(DISTINCT s) OVER (PARTITION BY k) FROM t"
        # Spark has no DISTINCT with OVER: ours, over rows Spark reads
        assert "bounded t on spark" in explained(made, filtered)
        for query, code, message in (
            ("failing(n)", "RUN-2010", "KeyError: 'no'"),
            ("too_few(n)", "RUN-2011", "returned 1 values for"),
        ):
            with pytest.raises(penstock.Error) as caught:
                made.execute(f"SELECT k, {query} FROM t GROUP BY k").fetchall()
            assert caught.value.code == code and message in caught.value.message, caught.value.message


MISTAKES = {
    "SELECT longest(1, 2) FROM t": ("SQL-1102", "longest takes 1 argument, not 2"),
    "SELECT longest(s ORDER BY k) FROM t": ("SQL-1105", "ORDER BY does not go with longest"),
    "SELECT k FROM t WHERE longest(s) = 'x'": ("SQL-1062", "cannot be used in WHERE"),
    "SELECT words(s) FROM t": ("SQL-1107", "it is a table function"),
    "SELECT failing(n) FROM t": ("RUN-2010", "Python function failing: KeyError: 'no'"),
    "SELECT i FROM t, LATERAL TABLE(backwards(n)) AS l(i)": (
        "RUN-2011",
        "do not ascend within the 5 rows",
    ),
}


@pytest.mark.parametrize("query", list(MISTAKES))
def test_mistakes(ours: Connection, query: str) -> None:
    with pytest.raises(penstock.Error) as caught:
        ours.execute(query).fetchall()
    assert (caught.value.code, MISTAKES[query][1] in caught.value.message) == (MISTAKES[query][0], True), (
        caught.value.message
    )


def test_a_window_of_python_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """Windows whose values the program computes: a job stopped in the middle gives the same rows as one
    that ran through.
    """
    answers = []
    for name, stops in (("straight", 0), ("stopped", 2)):
        out = tmp_path / name
        settings = {
            "execution.checkpointing.dir": str(tmp_path / f"state {name}"),
            "execution.batch.max-rows": "300",
            "table.dml-sync": "true",
        }
        for act in range(stops + 1):
            with connection(**settings, **{"parallelism.default": str(act + 1)}) as made:
                made.executescript(
                    f"""
                    CREATE TABLE s (k INT, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'datagen',
                      'number-of-rows' = '6000', 'rows-per-second' = '{0 if act == stops else 4000}', 'splits' = '3', 'fields.k.min' = '1',
                      'fields.k.max' = '5', 'fields.ts.kind' = 'sequence', 'fields.ts.start' = '2020-01-01 00:00:00', 'fields.ts.step' = '1 s');
                    CREATE TABLE o (k INT, m DOUBLE, e TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{out}');
                    SET 'table.dml-sync' = '{"true" if act == stops else "false"}';
                    """
                )
                job = made.execute(
                    "INSERT INTO o SELECT k, weighted_mean(v, v), window_end FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTE,"
                    " INTERVAL '10' MINUTE)) GROUP BY k, window_start, window_end"
                ).job
                assert job is not None
                if act < stops:
                    job.stop()
                    job.wait(PATIENCE_S)
        answers.append(
            sorted(
                (row["k"], row["e"], round(row["m"], 9))
                for row in ds.dataset(out, format="parquet").to_table().to_pylist()
            )
        )
    assert answers[0] == answers[1]
    assert len(answers[0]) > 50
