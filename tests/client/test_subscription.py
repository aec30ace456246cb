"""SUBSCRIBE and VERIFY: changes as rows, and stream beside batch."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock
from catalog.errors import PenstockError
from client.session import Session
from client.verification import difference

ROWS = pa.table({"k": ["a", "b", "a", "a"], "v": [1, 2, 3, None], "d": [0.1, 0.2, 0.3, 0.7]})


@pytest.fixture
def connection() -> penstock.Connection:  # type: ignore[name-defined]
    made = penstock.connect(settings={"execution.batch.max-rows": "1", "bounded.backend": "duckdb"})
    made.register("t", ROWS)
    return made


def test_rows_are_changes(connection: penstock.Connection) -> None:  # type: ignore[name-defined]
    cursor = connection.cursor().execute("SUBSCRIBE TO SELECT k, v FROM t WHERE v > ?", (1,))
    assert [column[0] for column in cursor.description] == ["op", "k", "v"]
    assert cursor.fetchall() == [("+I", "b", 2), ("+I", "a", 3)]
    cursor.execute("SUBSCRIBE TO t")
    assert [batch.column("op").to_pylist() for batch in cursor.changes()] == [["+I"]] * 4 or cursor.rowcount == 4
    cursor.execute("SUBSCRIBE SELECT k, SUM(v) AS s FROM t GROUP BY k")
    rows = cursor.fetchall()
    assert {row[0] for row in rows} <= {"+I", "-U", "+U"}
    assert [row for row in rows if row[1] == "a"][-1][2] == 4


def test_it_follows_what_never_ends(connection: penstock.Connection) -> None:  # type: ignore[name-defined]
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'fields.a.min' = '1', 'fields.a.max' = '2')")
    cursor.execute("SUBSCRIBE SELECT a, COUNT(*) FROM g GROUP BY a")
    rows = cursor.fetchmany(50, timeout=20)
    cursor.close()
    assert len(rows) == 50
    befores = [i for i, row in enumerate(rows[:-1]) if row[0] == "-U"]
    assert befores
    assert all(rows[i + 1][0] == "+U" and rows[i + 1][1] == rows[i][1] for i in befores)


def test_equal(connection: penstock.Connection) -> None:  # type: ignore[name-defined]
    cursor = connection.cursor().execute("VERIFY SELECT k, SUM(v), AVG(d), MAX(v / 3) FROM t GROUP BY k AGAINST BATCH")
    assert cursor.note is not None
    assert cursor.note.startswith("equal: 2 rows; stream ")


def test_different_rows_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session({"bounded.backend": "duckdb"})
    session.register("t", ROWS)
    real = session.plan
    monkeypatch.setattr(session, "plan", lambda bound, mode=None: real(real_other if mode == "batch" else bound, mode=mode))
    real_other = session.bind(session.parse("SELECT k, v + 1 AS v FROM t WHERE v > 1")[0].node)
    with pytest.raises(PenstockError) as caught:
        session.execute("VERIFY SELECT k, v FROM t AGAINST BATCH")
    error = caught.value
    assert error.code == "VER-7002"
    assert error.message == "stream and batch differ: 4 rows only of the stream (+), 2 only of the batch (-)"
    assert error.detail == "+ (a, 1)\n+ (b, 2)\n+ (a, 3)\n+ (a, NULL)\n- (b, 3)\n- (a, 4)"
    session.close()


def test_differences() -> None:
    nan = float("nan")
    one = pa.table({"k": [1, 1, 2, None], "d": [1.0, nan, 0.0, 3.0]})
    assert difference(one, one.take([3, 1, 2, 0])).rows.num_rows == 0
    near = pa.table({"k": [1, 1, 2, None], "d": [1.0 + 1e-12, nan, -0.0, 3.0 - 1e-10]})
    assert difference(one, near).rows.num_rows == 0
    far = pa.table({"k": [1, 1, 2, None], "d": [1.0 + 1e-6, nan, -0.0, 3.0]})
    found = difference(one, far)
    assert found.lines() == ["+ (1, 1.0)", "- (1, 1.000001)"]
    assert difference(one, one.slice(1)).counts.tolist() == [1]
    doubled = pa.concat_tables([one, one])
    assert difference(doubled, one).counts.tolist() == [1, 1, 1, 1]
    many = pa.table({"d": [i / 7 for i in range(1000)]})
    assert difference(many, pa.table({"d": [i / 7 * (1 + 2e-16) for i in reversed(range(1000))]})).rows.num_rows == 0
    nothing = pa.table({"s": pa.array([], pa.string())})
    assert difference(nothing, nothing).rows.num_rows == 0
