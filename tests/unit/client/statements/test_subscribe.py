"""SUBSCRIBE and VERIFY: changes as rows, and stream beside batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.client.session import Session
from penstock.client.statements.verify import difference
from penstock.repl.cli import main
from tests.harness.connections import WAYS, connected
from tests.harness.patience import PATIENCE_S

ROWS = pa.table({"k": ["a", "b", "a", "a"], "v": [1, 2, 3, None], "d": [0.1, 0.2, 0.3, 0.7]})


@pytest.fixture(params=WAYS)
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    with connected(request.param, {"execution.batch.max-rows": "1", "bounded.backend": "duckdb"}) as made:
        made.register("t", ROWS)
        yield made


def test_rows_are_changes(connection: penstock.Connection) -> None:  # type: ignore[name-defined]
    cursor = connection.cursor().execute("SUBSCRIBE TO SELECT k, v FROM t WHERE v > ?", (1,))
    assert [column[0] for column in cursor.description] == ["op", "k", "v"]
    assert cursor.fetchall() == [("+I", "b", 2), ("+I", "a", 3)]
    cursor.execute("SUBSCRIBE TO t")
    assert [batch.column("op").to_pylist() for batch in cursor.change_batches()] == [
        ["+I"]
    ] * 4 or cursor.rowcount == 4
    cursor.execute("SUBSCRIBE SELECT k, SUM(v) AS s FROM t GROUP BY k")
    rows = cursor.fetchall()
    assert {row[0] for row in rows} <= {"+I", "-U", "+U"}
    assert [row for row in rows if row[1] == "a"][-1][2] == 4


def test_it_follows_what_never_ends(connection: penstock.Connection) -> None:  # type: ignore[name-defined]
    cursor = connection.cursor()
    cursor.execute(
        "CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'fields.a.min' = '1', 'fields.a.max' = '2')"
    )
    cursor.execute("SUBSCRIBE SELECT a, COUNT(*) FROM g GROUP BY a")
    rows = cursor.fetchmany(50, timeout=PATIENCE_S)
    cursor.close()
    assert len(rows) == 50
    befores = [i for i, row in enumerate(rows[:-1]) if row[0] == "-U"]
    assert befores
    assert all(rows[i + 1][0] == "+U" and rows[i + 1][1] == rows[i][1] for i in befores)


def test_equal(connection: penstock.Connection) -> None:  # type: ignore[name-defined]
    cursor = connection.cursor().execute(
        "VERIFY SELECT k, SUM(v), AVG(d), MAX(v / 3) FROM t GROUP BY k AGAINST BATCH"
    )
    assert cursor.note is not None
    assert cursor.note.startswith("equal: 2 rows; stream ")


def test_different_rows_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session({"bounded.backend": "duckdb"})
    session.register("t", ROWS)
    real = session.pipeline.plan
    monkeypatch.setattr(
        session.pipeline,
        "plan",
        lambda bound, mode=None, **more: real(real_other if mode == "batch" else bound, mode=mode, **more),
    )
    real_other = session.pipeline.bind(session.parse("SELECT k, v + 1 AS v FROM t WHERE v > 1")[0].node)
    with pytest.raises(PenstockError) as caught:
        session.execute("VERIFY SELECT k, v FROM t AGAINST BATCH")
    error = caught.value
    assert error.code == "VER-7002"
    assert error.message == "stream and batch differ: 4 rows only of the stream (+), 2 only of the batch (-)"
    assert error.detail == "+ (a, 1)\n+ (b, 2)\n+ (a, 3)\n+ (a, NULL)\n- (b, 3)\n- (a, 4)"
    session.close()


TIMED = (
    "CREATE TABLE f (at TIMESTAMP(3), k STRING, v INT, WATERMARK FOR at AS at) "
    "WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv', 'source.replay' = 'true')"
)
COUNTED = "SELECT window_start, k, SUM(v) AS s FROM TABLE(TUMBLE(TABLE f, DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, k"


def test_up_to_a_moment_on_a_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row that comes too late for the stream is told, with its weight; before it nothing differs. The
    exit code says which.
    """
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    lines = [f"2026-01-01 00:00:{second:02},{'ab'[second % 2]},{second}" for second in range(60)]
    (tmp_path / "f.csv").write_text("at,k,v\n" + "\n".join([*lines, "2026-01-01 00:00:41,b,1000"]) + "\n")
    words = ["--set", "execution.batch.max-rows=7", "-c", TIMED.format(path=tmp_path / "f.csv"), "-c"]
    assert (
        main([*words, f"VERIFY {COUNTED} AGAINST BATCH ON duckdb UP TO TIMESTAMP '2026-01-01 00:00:39'"]) == 0
    )
    assert "equal: 8 rows; stream" in (shown := capsys.readouterr()).out + shown.err
    assert main([*words, f"VERIFY {COUNTED} AGAINST BATCH ON duckdb UP TO '2026-01-01 00:00:59'"]) == 6
    told = capsys.readouterr().err
    assert (
        "VER-7002" in told
        and "+ (2026-01-01 00:00:40, b, 225)" in told
        and "- (2026-01-01 00:00:40, b, 1225)" in told
    )
    for query, code in {
        f"VERIFY {COUNTED} AGAINST BATCH ON dukdb": "BND-5000",
        f"VERIFY {COUNTED} AGAINST BATCH UP TO TIMESTAMP 'noon'": "VER-7004",
        "VERIFY SELECT 1 AS n AGAINST BATCH ON duckdb UP TO '2026-01-01'": "VER-7003",
    }.items():
        assert main([*words, query]) == 1
        assert code in capsys.readouterr().err


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
    assert (
        difference(many, pa.table({"d": [i / 7 * (1 + 2e-16) for i in reversed(range(1000))]})).rows.num_rows
        == 0
    )
    nothing = pa.table({"s": pa.array([], pa.string())})
    assert difference(nothing, nothing).rows.num_rows == 0
