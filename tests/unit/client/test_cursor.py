import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import Kind, PenstockError, SourceText, Span
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING
from penstock.client.cursor import Cursor
from penstock.client.dbapi_errors import OperationalError, class_of
from penstock.client.results import row_buffer
from penstock.client.results.result import Result, Shape, note_result
from penstock.client.statements import dispatch
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.result_channels import ResultChannel
from tests.harness.patience import PATIENCE_S

SCHEMA = Schema((Field("k", STRING), Field("n", BIGINT, False)))


def batch(rows, weights=None):
    arrow = pa.RecordBatch.from_arrays(
        [pa.array([r[0] for r in rows], pa.string()), pa.array([r[1] for r in rows], pa.int64())],
        schema=SCHEMA.to_arrow(),
    )
    return Batch(arrow, None if weights is None else np.array(weights, np.int64))


class ChannelFeed(ResultChannel):
    """A feed the test fills by hand."""


class FakeSession:
    """Answers every text with the result it was given."""

    def __init__(self, result):
        self.result = result
        self.asked = []

    def execute(self, sql, params, hold=None):
        self.asked.append((sql, tuple(params)))
        if isinstance(self.result, PenstockError):
            raise self.result
        return self.result


def cursor_over(*batches, end=True, error=None, **shape):
    feed = ChannelFeed()
    for one in batches:
        feed.offer(one)
    if end:
        feed.finish(error)
    shape.setdefault("finite", end)
    return Cursor(FakeSession(Result(Shape(SCHEMA, streamed=True, **shape), feed))).execute("SELECT"), feed


def test_module_facts():
    assert (penstock.apilevel, penstock.threadsafety, penstock.paramstyle) == ("2.0", 2, "qmark")
    with pytest.raises(AttributeError):
        penstock.nothing  # noqa: B018


def test_the_ten_exceptions_stand_in_their_order():
    assert issubclass(penstock.Warning, Exception)
    assert issubclass(penstock.Error, Exception)
    for name in ("InterfaceError", "DatabaseError"):
        assert issubclass(getattr(penstock, name), penstock.Error)
    for name in (
        "DataError",
        "OperationalError",
        "IntegrityError",
        "InternalError",
        "ProgrammingError",
        "NotSupportedError",
    ):
        assert issubclass(getattr(penstock, name), penstock.DatabaseError)


@pytest.mark.parametrize(
    ("code", "kind", "sqlstate", "expected"),
    [
        ("SQL-1042", Kind.USER, "42703", penstock.ProgrammingError),
        ("RUN-2001", Kind.USER, "22012", penstock.DataError),
        ("DAT-4504", Kind.USER, "42000", penstock.DataError),
        ("SQL-1601", Kind.USER, "0A000", penstock.NotSupportedError),
        ("BND-5001", Kind.EXTERNAL, "58000", penstock.OperationalError),
        ("INT-9001", Kind.INTERNAL, "XX000", penstock.InternalError),
        ("CLI-6001", Kind.USER, "24000", penstock.InterfaceError),
        ("SQL-1900", Kind.USER, "23505", penstock.IntegrityError),
        ("RUN-2024", Kind.EXTERNAL, "53200", penstock.OperationalError),
    ],
)
def test_errors_find_their_class(code, kind, sqlstate, expected):
    assert class_of(PenstockError(code, "x", kind=kind, sqlstate=sqlstate)) is expected


def test_an_error_keeps_all_it_knows():
    error = PenstockError(
        "SQL-1042",
        "no column",
        hint="try b",
        span=Span(7, 8),
        source=SourceText("SELECT a"),
        sqlstate="42703",
    )
    with pytest.raises(penstock.ProgrammingError) as caught:
        Cursor(FakeSession(error)).execute("SELECT a")
    raised = caught.value
    assert (raised.code, raised.line, raised.column, raised.hint, raised.kind, raised.sqlstate) == (
        "SQL-1042",
        1,
        8,
        "try b",
        "user",
        "42703",
    )
    assert "^" in str(raised)


def test_description_and_rowcount():
    cursor, _ = cursor_over(batch([("a", 1)]))
    assert [(d[0], d[1], d[6]) for d in cursor.description] == [
        ("k", pa.string(), True),
        ("n", pa.int64(), False),
    ]
    assert all(len(d) == 7 for d in cursor.description)
    assert cursor.rowcount == -1
    assert cursor.fetchall() == [("a", 1)]
    assert cursor.rowcount == 1
    assert cursor.fetchall() == []
    assert cursor.fetchone() is None


def test_fetchmany_and_fetchone_share_the_rows():
    cursor, _ = cursor_over(batch([("a", 1), ("b", 2)]), batch([("c", 3), ("d", 4)]))
    assert cursor.fetchone() == ("a", 1)
    assert cursor.fetchmany() == [("b", 2)]
    assert cursor.fetchmany(1) == [("c", 3)]
    assert cursor.fetchall() == [("d", 4)]
    assert cursor.rowcount == 4


def test_iteration_ends():
    cursor, _ = cursor_over(batch([("a", 1)]), batch([("b", 2)]))
    assert list(cursor) == [("a", 1), ("b", 2)]


def test_tuples_and_arrow_share_the_rows():
    cursor, _ = cursor_over(batch([("a", 1), ("b", 2)]), batch([("c", 3), ("d", 4)]))
    assert cursor.fetchone() == ("a", 1)
    assert cursor.arrow(limit=2).to_pydict() == {"k": ["b", "c"], "n": [2, 3]}
    cursor, _ = cursor_over(batch([("a", 1), ("b", 2)]), batch([("c", 3)]))
    assert cursor.fetchone() == ("a", 1)
    assert [one.to_pydict()["k"] for one in cursor.batches()] == [["b"], ["c"]]
    cursor, _ = cursor_over(batch([("a", 1), ("b", 2)]), batch([("c", 3)]))
    assert cursor.fetchone() == ("a", 1)
    assert list(cursor.changes()) == [("+I", ("b", 2)), ("+I", ("c", 3))]
    changes = (batch([("a", 1), ("b", 1)]), batch([("a", 1), ("a", 2)], [-1, 1]))
    cursor, _ = cursor_over(*changes, insert_only=False, upsert_key=(0,), update_key=(0,))
    assert cursor.fetchone() in (("a", 2), ("b", 1))
    assert cursor.arrow().num_rows == 1
    assert cursor.arrow().num_rows == 0
    assert cursor.rowcount == 2


def test_a_changing_result_that_ends_gives_final_rows():
    changes = (batch([("a", 1), ("b", 1)]), batch([("a", 1), ("a", 2)], [-1, 1]))
    cursor, _ = cursor_over(*changes, insert_only=False, upsert_key=(0,), update_key=(0,))
    assert cursor.change_mode == "upsert"
    assert sorted(cursor.fetchall()) == [("a", 2), ("b", 1)]
    cursor, _ = cursor_over(*changes, insert_only=False, upsert_key=(0,), update_key=(0,))
    assert sorted(cursor) == [("a", 2), ("b", 1)]
    cursor, _ = cursor_over(*changes, insert_only=False, upsert_key=(0,), update_key=(0,))
    assert sorted(cursor.fetch_arrow_table().to_pydict()["n"]) == [1, 2]


def test_changes_have_ops():
    cursor, _ = cursor_over(
        batch([("a", 1)]),
        batch([("a", 1), ("a", 2)], [-1, 1]),
        insert_only=False,
        upsert_key=(0,),
        update_key=(0,),
    )
    table = pa.Table.from_batches(list(cursor.change_batches()))
    assert table.column_names == ["op", "k", "n"]
    assert list(zip(*table.to_pydict().values(), strict=True)) == [
        ("+I", "a", 1),
        ("-U", "a", 1),
        ("+U", "a", 2),
    ]


def test_an_endless_result_is_not_fetched_all():
    cursor, _ = cursor_over(batch([("a", 1), ("b", 2)]), end=False)
    with pytest.raises(penstock.NotSupportedError) as caught:
        cursor.fetchall()
    assert caught.value.code == "CLI-6010"
    assert cursor.fetchall(limit=1) == [("a", 1)]


def test_fetchmany_with_a_timeout_leaves_the_result_open():
    cursor, feed = cursor_over(batch([("a", 1)]), end=False)
    started = time.monotonic()
    assert cursor.fetchmany(10, timeout=0.05) == [("a", 1)]
    assert cursor.fetchmany(10, timeout=0.01) == []
    assert time.monotonic() - started < PATIENCE_S
    feed.offer(batch([("b", 2)]))
    assert cursor.fetchmany(10, timeout=0.05) == [("b", 2)]


def test_an_endless_changing_result_gives_changes_and_snapshots():
    cursor, _ = cursor_over(
        batch([("a", 1)]),
        batch([("a", 1), ("a", 2)], [-1, 1]),
        end=False,
        insert_only=False,
        upsert_key=(0,),
        update_key=(0,),
    )
    for read in (cursor.fetchone, cursor.fetchmany, cursor.__next__, cursor.fetch_record_batch):
        with pytest.raises(penstock.NotSupportedError) as caught:
            read()
        assert caught.value.code == "CLI-6009"
        assert "changes()" in caught.value.hint
    found = cursor.changes()
    assert [next(found) for _ in range(3)] == [("+I", ("a", 1)), ("-U", ("a", 1)), ("+U", ("a", 2))]
    cursor, _ = cursor_over(
        batch([("a", 1)]),
        batch([("a", 1), ("a", 2)], [-1, 1]),
        end=False,
        insert_only=False,
        upsert_key=(0,),
        update_key=(0,),
    )
    assert cursor.fetchall(timeout=0.05) == [("a", 2)]


def test_cancel_from_another_thread_wakes_a_waiting_fetch():
    cursor, _ = cursor_over(end=False)
    threading.Timer(0.05, cursor.cancel).start()
    started = time.monotonic()
    assert cursor.fetchone() is None
    assert time.monotonic() - started < PATIENCE_S


def test_an_error_of_the_job_comes_after_its_rows():
    error = PenstockError("RUN-2001", "division by zero", sqlstate="22012")
    cursor, _ = cursor_over(batch([("a", 1)]), error=error)
    assert cursor.fetchone() == ("a", 1)
    with pytest.raises(penstock.DataError, match="division by zero"):
        cursor.fetchone()


@pytest.mark.parametrize("where", ["the statement", "the rows", "their values"])
def test_memory_that_is_short_is_an_error_of_the_client(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError("malloc of size 4096 failed")

    owner, name = {
        "the statement": (dispatch, "run_statement"),
        "the rows": (Result, "_next"),
        "their values": (row_buffer, "tuples"),
    }[where]
    assert hasattr(owner, name)
    monkeypatch.setattr(owner, name, full)
    with (
        penstock.connect(settings={"bounded.backend": "duckdb"}) as connection,
        pytest.raises(OperationalError) as caught,
    ):
        connection.cursor().execute("SELECT 1 AS a").fetchall()
    assert caught.value.code == "RUN-2024" and "4,096 bytes were asked for" in caught.value.message


def test_properties_without_a_result():
    cursor = Cursor(FakeSession(note_result("done")))
    assert (cursor.job, cursor.note, cursor.description, cursor.rowcount) == (None, None, None, -1)
    for name in ("result", "schema", "change_mode", "nothing_of_the_kind"):
        assert not hasattr(cursor, name)
    cursor.execute("SET")
    assert hasattr(cursor, "result")
    cursor.close()
    assert not hasattr(cursor, "result")


def test_a_notebook_shows_the_first_rows_and_leaves_them_unread():
    cursor = Cursor(FakeSession(note_result("done <b>")))
    assert repr(cursor) == "<penstock.Cursor: nothing executed>"
    assert cursor.execute("SET")._repr_html_() == "<p>done &lt;b&gt;</p>"
    cursor, _ = cursor_over(*(batch([(f"<{n}>", n)]) for n in range(30)))
    shown = cursor._repr_html_()
    assert shown.count("<tr>") == 21
    assert "<td>&lt;0&gt;</td>" in shown
    assert "the first 20 rows" in shown
    assert len(cursor.fetchall()) == 30
    assert "k STRING, n BIGINT; a result that ends" in repr(cursor)


def test_a_notebook_reads_nothing_of_an_endless_result():
    cursor, feed = cursor_over(batch([("a", 1)]), end=False)
    assert "an endless result: iterate over it" in cursor._repr_html_()
    assert "<td>" not in cursor._repr_html_()
    assert feed.next(0).num_rows == 1
    cursor, _ = cursor_over(end=False, insert_only=False)
    assert "changes()" in cursor._repr_html_()
    cursor.close()
    assert repr(cursor) == "<penstock.Cursor: closed>"


def test_use_in_the_wrong_order():
    cursor = Cursor(FakeSession(note_result("done")))
    with pytest.raises(penstock.InterfaceError, match="nothing has been executed"):
        cursor.fetchone()
    assert cursor.description is None
    cursor.execute("SET")
    assert cursor.note == "done"
    with pytest.raises(penstock.InterfaceError, match="no rows"):
        cursor.fetchall()
    cursor.close()
    with pytest.raises(penstock.InterfaceError, match="closed"):
        cursor.execute("SET")


def test_executemany_runs_once_per_row_and_refuses_queries():
    session = FakeSession(note_result("done"))
    Cursor(session).executemany("INSERT", [(1,), (2,)])
    assert session.asked == [("INSERT", (1,)), ("INSERT", (2,))]
    with pytest.raises(penstock.ProgrammingError, match="no rows"):
        Cursor(cursor_over(batch([("a", 1)]))[0]._session).executemany("SELECT", [(1,)])


def test_context_managers_close():
    with Cursor(FakeSession(note_result("done"))) as cursor:
        cursor.execute("SET")
    with pytest.raises(penstock.InterfaceError):
        cursor.execute("SET")
