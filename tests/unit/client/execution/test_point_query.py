"""Point queries return what the bounded backend returns: rows, types and errors."""

import threading
from contextlib import contextmanager

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.client.session import Session
from tests.harness.patience import await_that

ROWS = {
    "k": [1, 2, None, 4],
    "name": ["a", "b", "n", None],
    "price": [1.5, -0.0, 2.5, None],
    "text": ["10", "x", None, "7"],
}


@pytest.fixture(scope="module")
def connection():
    connection = Connection(Session({"bounded.backend": "duckdb"}))
    connection.register("source", pa.table(ROWS), stream=True)
    connection.execute(
        "CREATE MATERIALIZED VIEW m AS SELECT k, name, price, text FROM source GROUP BY k, name, price, text"
    )
    connection.execute(
        "CREATE VIEW over_m AS SELECT k + 0 AS k0, k AS id, name FROM m WHERE price IS NOT NULL"
    )
    count = "SELECT COUNT(*) FROM m"
    await_that(lambda: connection.execute(count).fetchone() == (4,))
    yield connection
    connection.close()


QUERIES = [
    ("SELECT * FROM m WHERE k = ?", [1]),
    ("SELECT * FROM m WHERE ? = k", [2]),
    ("SELECT name, price * 2 AS twice FROM m WHERE k = ? AND price > ?", [1, 1]),
    ("SELECT name FROM m WHERE k = ? AND name = ?", [1, "a"]),
    ("SELECT name FROM m WHERE k = ? AND name = ?", [1, "b"]),
    ("SELECT name FROM m WHERE k = ?", [None]),
    ("SELECT name FROM m WHERE k = ?", [99]),
    ("SELECT name FROM m WHERE k = ?", [1.5]),
    ("SELECT name FROM m WHERE k = ?", [1 << 40]),
    ("SELECT name FROM m WHERE k = 4", []),
    ("SELECT k FROM m WHERE name = ?", ["b"]),
    ("SELECT k FROM m WHERE price = ?", [0.0]),
    ("SELECT id, name FROM over_m WHERE id = ?", [1]),
    ("SELECT id, name FROM over_m WHERE id = ?", [4]),
    ("SELECT CASE WHEN price > 1 THEN 'much' ELSE 'little' END AS c FROM m WHERE k = ?", [1]),
    ("SELECT name FROM m WHERE k = ? OR k = 2", [1]),
    ("SELECT name FROM m WHERE k = ? ORDER BY name LIMIT 1", [1]),
    ("SELECT COUNT(*) AS n FROM m WHERE k = ?", [1]),
    ("SELECT CAST(text AS INT) AS t FROM m WHERE k = ?", [1]),
]


@pytest.fixture
def slow(connection, monkeypatch):
    """Return the rows of a query without the fast path."""

    def run(sql, values):
        with monkeypatch.context() as patched:
            patched.setattr(connection.session.pipeline, "point_query", lambda bound: None)
            return connection.session.run(connection.session.parse_one(sql), values).final_rows()

    return run


@pytest.mark.parametrize(("sql", "values"), QUERIES)
def test_what_is_answered_at_once_is_what_is_answered_later(connection, sql, values):
    prepared = connection.session.prepare(sql)
    later = prepared.execute(values).final_rows()
    # the first has built the index
    now = prepared.execute_now(values)
    # 1.5 is no BIGINT, and NULL has no type of its own
    assert now is not None or not prepared.is_point_query or values in ([1.5], [None])
    assert now is None or now.final_rows().equals(later)


def test_what_would_wait_is_not_answered_at_once():
    made = Connection(Session({"bounded.backend": "duckdb"}))
    try:
        made.register("source", pa.table({"k": [1, 2]}), stream=True)
        made.execute("CREATE MATERIALIZED VIEW w AS SELECT k, COUNT(*) AS n FROM source GROUP BY k")
        await_that(lambda: made.execute("SELECT COUNT(*) FROM w").fetchone() == (2,))
        prepared = made.session.prepare("SELECT n FROM w WHERE k = ?")
        contents = made.session.state.views.tables.contents("w")
        # no index yet
        assert prepared.execute_now([1]) is None
        assert prepared.execute([1]).final_rows().to_pylist() == [{"n": 1}]
        assert prepared.execute_now([1]).final_rows().to_pylist() == [{"n": 1}]
        # a change that the index has not followed yet, and then has
        contents.stage(10**6, contents.state()[1])
        contents.complete(10**6)
        assert prepared.execute_now([1]) is None
        assert prepared.execute([1]).final_rows().to_pylist() == [{"n": 1}] * 2
        assert prepared.execute_now([1]).final_rows().to_pylist() == [{"n": 1}] * 2
        # a statement of the session runs, a change is being made, too many rows of a key
        for lock, answers in ((made.session.state.lock, False), (contents._changed, True)):
            with in_another_thread(lock):
                assert (prepared.execute_now([1]) is not None) == answers
        contents.stage(10**6 + 1, contents.state()[1] * 60)
        contents.complete(10**6 + 1)
        assert prepared.execute([1]).final_rows().num_rows == 122
        assert prepared.execute_now([1]) is None
        # a setting was changed: the plan may be another
        assert prepared.execute_now([3]).final_rows().num_rows == 0
        made.execute("SET 'table.local-time-zone' = 'Asia/Tokyo'")
        assert prepared.execute_now([3]) is None
    finally:
        made.close()


@contextmanager
def in_another_thread(lock):
    """Hold a lock in another thread: the locks of a session are re-entrant."""
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(("sql", "values"), QUERIES)
def test_rows_and_types_are_those_of_the_backend(connection, slow, sql, values):
    expected = slow(sql, values)
    # executed once, again from the text, and prepared
    answers = [connection.session.execute(sql, values).final_rows() for _ in range(3)]
    answers.append(connection.session.prepare(sql).execute(values).final_rows())
    for rows in answers:
        assert rows.schema.equals(expected.schema)
        assert sorted(map(str, rows.to_pylist())) == sorted(map(str, expected.to_pylist()))


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT CAST(text AS INT) AS t FROM m WHERE k = ?", [2]),
        ("SELECT k FROM m WHERE k = ?", ["abc"]),
        ("SELECT k FROM m WHERE k = ?", [1, 2]),
        ("SELECT nothing FROM m WHERE k = ?", [1]),
    ],
)
def test_errors_are_those_of_the_backend(connection, slow, sql, values):
    codes = []
    for run in (slow, *[lambda sql, values: connection.session.execute(sql, values).final_rows()] * 3):
        with pytest.raises(PenstockError) as error:
            run(sql, values)
        codes.append(error.value.code)
    assert len(set(codes)) == 1


def test_a_point_query_starts_nothing(connection):
    jobs = len(connection.session.jobs())
    cursor = connection.execute("SELECT name FROM m WHERE k = ?", [1])
    assert cursor.fetchall() == [("a",)]
    assert cursor.result.backend is None and len(connection.session.jobs()) == jobs


@pytest.mark.parametrize(
    ("sql", "is_point"),
    [
        ("SELECT name FROM m WHERE k = ?", True),
        ("SELECT name FROM m WHERE k = ? AND k = 1", True),
        # the value is more than a key: the text alone does not say its type
        ("SELECT ? AS x FROM m WHERE k = ?", False),
        ("SELECT name FROM m WHERE k > ?", False),
        ("SELECT name, CURRENT_TIMESTAMP AS t FROM m WHERE k = ?", False),
        ("SELECT DISTINCT name FROM m WHERE k = ?", False),
    ],
)
def test_what_is_a_point_query(connection, sql, is_point):
    assert connection.session.prepare(sql).is_point_query == is_point


def test_a_dropped_view_is_not_read_from_its_index(connection):
    connection.execute("CREATE MATERIALIZED VIEW d AS SELECT k, name FROM m")
    sql = "SELECT name FROM d WHERE k = ?"
    for _ in range(3):
        assert connection.execute(sql, [1]).fetchall() == [("a",)]
    connection.execute("DROP MATERIALIZED VIEW d")
    with pytest.raises(PenstockError) as error:
        connection.execute(sql, [1])
    assert error.value.code == "SQL-1041"
