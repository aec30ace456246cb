"""Where one row gives many they are emitted in pieces: whatever the size of these, the answer is the same,
and no more than one is under way.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.row_pieces import LIMITS, cut, cut_pairs, joined, row_sizes, widest_row
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.join.lookup_join import LookupJoinOperator
from penstock.engine.operators.limit import LimitOperator
from penstock.planner.expressions.nodes import AggregateCall, SortKey
from penstock.planner.logical.over import RUNNING
from tests.harness.operator_specs import limit_spec, over_spec, partition_top_spec
from tests.harness.operators import done
from tests.unit.engine.operators.changelogs import Collected, batch_of, context, listed
from tests.unit.engine.operators.partition_runs import SCHEMA, START, column

CHANGES = "'connector' = 'filesystem', 'format' = 'debezium-json', 'source.replay' = 'true'"
LINES = "'connector' = 'filesystem', 'format' = 'json', 'source.replay' = 'true'"
TABLES = f"""
CREATE TABLE s (id INT, k INT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({CHANGES}, 'path' = '%s/s');
CREATE TABLE t (id INT, k INT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({CHANGES}, 'path' = '%s/t');
CREATE TABLE e (k INT, ts TIMESTAMP(3), vs ARRAY<INT>, x STRING, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH ({LINES}, 'path' = '%s/e');
CREATE TABLE f (k INT, ts TIMESTAMP(3), v INT, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH ({LINES}, 'path' = '%s/f');
CREATE TABLE d (k INT, w STRING) WITH ('connector' = 'sqlite', 'path' = '%s/d.db', 'table-name' = 'd', 'lookup.async' = 'false')
"""
WINDOWS = "TABLE({}(TABLE e, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '8' SECOND))"
TUMBLED = "(SELECT * FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '8' SECOND))) AS {}"
QUERIES = {
    "inner": "SELECT s.id, t.id AS i FROM s JOIN t ON s.k = t.k AND s.v <> t.v",
    "left": "SELECT s.id, t.id AS i FROM s LEFT JOIN t ON s.k = t.k AND s.v <> t.v",
    "full": "SELECT s.id, t.id AS i FROM s FULL JOIN t ON s.k = t.k",
    "semi": "SELECT id FROM s WHERE k IN (SELECT k FROM t WHERE v > 2)",
    "anti": "SELECT id FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.v = s.v)",
    "cross": "SELECT COUNT(*) AS n, SUM(s.v * t.v) AS x FROM s CROSS JOIN t",
    "interval": "SELECT e.k, e.ts, f.v FROM e JOIN f ON e.k = f.k AND f.ts BETWEEN e.ts - INTERVAL '3' SECOND AND e.ts",
    "interval left": "SELECT e.k, e.ts, f.v FROM e LEFT JOIN f ON e.k = f.k AND f.ts BETWEEN e.ts - INTERVAL '3' SECOND AND e.ts AND f.v > 3",
    "window join": f"SELECT a.k, b.v FROM {TUMBLED.format('e', 'a')} FULL JOIN {TUMBLED.format('f', 'b')} ON a.k = b.k"
    " AND a.window_start = b.window_start AND a.window_end = b.window_end",
    "lookup": "SELECT p.k, d.w FROM (SELECT k, PROCTIME() AS at FROM f) AS p JOIN d FOR SYSTEM_TIME AS OF p.at ON p.k = d.k",
    "lookup left": "SELECT p.k, p.v, d.w FROM (SELECT k, v, PROCTIME() AS at FROM f) AS p LEFT JOIN d FOR SYSTEM_TIME AS OF p.at"
    " ON p.k = d.k AND CHAR_LENGTH(d.w) < p.v",
    "unnest": "SELECT k, u FROM e CROSS JOIN UNNEST(vs) AS q (u)",
    "ordinality": "SELECT k, u, n FROM e LEFT JOIN UNNEST(vs) WITH ORDINALITY AS q (u, n) ON u > 2 AND n < 9",
    "series": "SELECT k, g FROM f, LATERAL range(0, v) AS q (g)",
    "unnest of a join": "SELECT s.id, u FROM s JOIN t ON s.k = t.k CROSS JOIN UNNEST(ARRAY[s.v, t.v, t.id]) AS q (u)",
    "hop": f"SELECT k, window_start, x FROM {WINDOWS.format('HOP')}",
    "cumulate": f"SELECT k, window_start, window_end, x FROM {WINDOWS.format('CUMULATE')}",
    "hop aggregate": f"SELECT window_start, COUNT(*) AS n, MIN(k) AS m FROM {WINDOWS.format('HOP')} GROUP BY window_start, window_end",
    "cumulate aggregate": f"SELECT k, window_end, COUNT(*) AS n FROM {WINDOWS.format('CUMULATE')} GROUP BY k, window_start, window_end",
    "tumble aggregate": "SELECT k, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '8' SECOND))"
    " GROUP BY k, window_start, window_end",
    "early hop": f"SELECT k, window_end, COUNT(*) AS n FROM {WINDOWS.format('HOP')} WHERE ts < TIMESTAMP '2026-01-01 00:00:12'"
    " GROUP BY k, window_start, window_end EMIT CHANGES",
    "early cumulate": f"SELECT k, window_end, MIN(ts) AS n FROM {WINDOWS.format('CUMULATE')} GROUP BY k, window_start, window_end EMIT CHANGES"
    " EVERY INTERVAL '1' SECOND WITH LATENESS INTERVAL '3' SECOND",
    "over changes": "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY id) AS x FROM s",
    "top of changes": "SELECT id, r FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id) AS r FROM s) AS q WHERE r <= 4",
    "rank of changes": "SELECT v, r FROM (SELECT v, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM s) AS q WHERE r <= 4",
    "top of rows": "SELECT k, v FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM f) AS q WHERE r <= 4",
    "over in time": "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING) AS x FROM f",
    "session table": "SELECT k, window_end FROM TABLE(SESSION(TABLE f PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND))",
    "session aggregate": "SELECT k, window_end, COUNT(*) AS n FROM TABLE(SESSION(TABLE f PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECOND))"
    " GROUP BY k, window_start, window_end",
    "window top": "SELECT k, v FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v, k) AS r"
    " FROM TABLE(TUMBLE(TABLE f, DESCRIPTOR(ts), INTERVAL '8' SECOND))) AS q WHERE r <= 3",
    "final": "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT FINAL",
    "in order": "SELECT k, v, ts FROM f ORDER BY ts",
    "match": "SELECT k, n FROM f MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(A.v) AS n AFTER MATCH SKIP PAST LAST ROW"
    " PATTERN (A+ B) DEFINE B AS B.v > 4) AS m",
    "grouping sets": "SELECT k, v, COUNT(*) AS n FROM s GROUP BY CUBE (k, v)",
}
SIZES = {"one row": (1, 1 << 20), "three rows": (3, 1 << 20), "few bytes": (1 << 16, 64)}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    root, dice = tmp_path_factory.mktemp("pieces"), random.Random(5)
    for name in ("s", "t"):
        _write(root / name, _changes(dice))
    _write(
        root / "e",
        [
            {"k": dice.randrange(3), "ts": _at(dice, i), "vs": list(range(dice.randrange(12))), "x": "x" * i}
            for i in range(40)
        ],
    )
    _write(
        root / "f", [{"k": dice.randrange(4), "ts": _at(dice, i), "v": dice.randrange(9)} for i in range(40)]
    )
    import sqlite3

    with sqlite3.connect(root / "d.db") as database:
        database.execute("CREATE TABLE d (k INTEGER, w TEXT)")
        database.executemany(
            "INSERT INTO d VALUES (?, ?)", [(k, "w" * n) for k in range(3) for n in range(7)]
        )
    made = Session({"bounded.backend": "duckdb", "execution.runtime-mode": "streaming"})
    for statement in (TABLES % ((root,) * 5)).split(";"):
        made.execute(statement)
    return made


def _write(folder: Path, lines: list[dict]) -> None:
    folder.mkdir()
    (folder / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _at(dice: random.Random, second: int) -> str:
    return f"2026-01-01 00:00:{max(0, second - dice.randrange(2)):02d}"


def _changes(dice: random.Random) -> list[dict]:
    rows: dict[int, dict] = {}
    changes = []
    for _ in range(60):
        key = dice.randrange(20)
        before = rows.get(key)
        after = (
            None
            if before is not None and dice.random() < 0.3
            else {"id": key, "k": dice.randrange(2), "v": dice.randrange(6)}
        )
        changes.append(
            {"before": before, "after": after, "op": "c" if before is None else "d" if after is None else "u"}
        )
        rows.pop(key, None)
        if after is not None:
            rows[key] = after
    return changes


@pytest.mark.parametrize("name", QUERIES)
def test_the_answer_does_not_depend_on_the_size_of_pieces(
    session: Session, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def answer() -> list[str]:
        return sorted(map(repr, session.execute(QUERIES[name]).final_rows().to_pylist()))

    expected = answer()
    assert expected
    for rows, size in SIZES.values():
        monkeypatch.setattr(LIMITS, "piece_rows", rows)
        monkeypatch.setattr(LIMITS, "piece_bytes", size)
        monkeypatch.setattr(LIMITS, "merged_pairs", 5)
        assert answer() == expected
    monkeypatch.setattr(LIMITS, "batch_bytes", 100)
    assert answer() == expected


SAMPLES: dict[str, Callable[[], pa.Array]] = {
    "text": lambda: pa.array(["", "abc", None, "é" * 9]),
    "large text": lambda: pa.array(["", "abc", None, "x"], pa.large_string()),
    "numbers": lambda: pa.array([1, None, 3, 4], pa.int32()),
    "truths": lambda: pa.array([True, None, False, True]),
    "nulls": lambda: pa.nulls(4),
    "lists of text": lambda: pa.array([["abc", "d"], None, [], ["x" * 50]]),
    "rows": lambda: pa.array([{"a": "abc", "b": 1}, None, {"a": "", "b": 2}, {"a": "x" * 70, "b": None}]),
    "maps": lambda: pa.array(
        [[("a", [1, 2])], None, [], [("b" * 40, [3])]], pa.map_(pa.string(), pa.list_(pa.int64()))
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_sizes_of_rows_follow_their_contents(name: str) -> None:
    column = SAMPLES[name]()
    rows = pa.RecordBatch.from_arrays([pa.concat_arrays([column, column]).slice(2, 5)], ["c"])
    sizes = row_sizes(rows)
    assert row_sizes(rows, np.array([3, 0, 3])).tolist() == sizes[[3, 0, 3]].tolist()
    whole = row_sizes(rows.take(pa.array([0, 1, 2, 3, 4])))
    assert sizes.tolist() == whole.tolist() and abs(int(whole.sum()) - rows.nbytes) < 64
    assert row_sizes(rows.slice(0, 0)).size == 0
    assert int(sizes.max()) <= widest_row(rows)


def test_rows_that_fit_at_their_widest_are_cut_by_their_number() -> None:
    def sizes() -> np.ndarray:
        raise AssertionError("the sizes of rows are read only where a piece may have too many bytes")

    rows, widest = LIMITS.piece_rows, LIMITS.piece_bytes // LIMITS.piece_rows
    assert list(cut_pairs(2 * rows + 1, widest, sizes)) == [
        (0, rows),
        (rows, 2 * rows),
        (2 * rows, 2 * rows + 1),
    ]
    assert list(cut_pairs(rows, widest, sizes)) == [(0, rows)] and list(cut_pairs(0, widest, sizes)) == []
    with pytest.raises(AssertionError):
        list(cut_pairs(rows, widest + 1, sizes))


def test_cuts_hold_rows_and_sizes() -> None:
    sizes = np.array([5, 1, 1, 9, 1, 0, 0, 0, 0])
    assert list(cut(sizes, 3, 6)) == [(0, 2), (2, 3), (3, 4), (4, 7), (7, 9)]
    assert list(cut(np.zeros(0, np.int64), 3, 6)) == []


def test_batches_are_joined_up_to_what_an_array_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [pa.record_batch({"x": ["a" * 10] * n}) for n in (1, 2, 3, 1)]
    assert [batch.num_rows for batch in joined(batches)] == [7]
    monkeypatch.setattr(LIMITS, "array_bytes", 60)
    assert [batch.num_rows for batch in joined(batches)] == [3, 4]


def test_a_row_of_a_great_weight_is_written_bit_by_bit() -> None:
    rows = pa.record_batch({"x": [1, 2, 3, 4]})
    pieces = list(Batch(rows, np.array([1, -7, 2, 1])).copies(4))
    found = [
        list(zip(piece.rows.column(0).to_pylist(), piece.weights.tolist(), strict=True))
        for piece in pieces
        if piece.weights is not None
    ]
    assert found == [[(1, 1), (2, -3)], [(2, -4)], [(3, 2), (4, 1)]]


MANY = 10**12
"""Copies of a row that nobody could hold one by one."""


def test_copies_of_a_row_are_looked_up_as_one(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    query = QUERIES["lookup left"]
    once = session.execute(query).final_rows().num_rows
    take = LookupJoinOperator.on_batch
    monkeypatch.setattr(
        LookupJoinOperator, "on_batch", lambda self, batch, *more: take(self, _weighted(batch, MANY), *more)
    )
    counted = session.execute(f"SELECT COUNT(*) AS n FROM ({query}) AS q").final_rows()
    assert counted.column("n").to_pylist() == [once * MANY]


def _weighted(batch: Batch, weight: int) -> Batch:
    return Batch(batch.rows, np.full(batch.num_rows, weight), batch.behind)


@pytest.mark.parametrize("insert_only", [True, False])
def test_of_copies_of_a_row_only_those_that_can_be_shown_are_looked_at(insert_only: bool) -> None:
    order = (SortKey(column(2), False, False),)
    operator = build_operator(
        partition_top_spec(
            "t", "top", SCHEMA, SCHEMA, (0,), order, "row_number", 3, False, None, insert_only
        ),
        JobOptions(),
    )
    operator.open(context())
    out = Collected()
    row, first = (1, START, 5, "a"), (1, START, 1, "b")
    done(operator.on_batch(batch_of([(row, MANY)], SCHEMA.to_arrow()), 0, out))
    done(operator.on_batch(batch_of([(first, 1)], SCHEMA.to_arrow()), 0, out))
    assert out.folded() == {row: 2, first: 1}


def test_a_limit_of_copies_makes_no_rows_of_them() -> None:
    numbers = Schema((Field("n", BIGINT),))
    operator, out = LimitOperator(limit_spec("id", "limit", numbers, MANY, 5), JobOptions()), Collected()
    for value in range(3):
        operator.on_batch(Batch(pa.record_batch({"n": [value]}), np.array([MANY // 2])), 0, out)
    assert out.changes() == [((0,), MANY // 2 - 5), ((1,), MANY // 2), ((2,), 5)]


def test_what_a_partition_changes_is_emitted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default sizes, as a control, it is one batch; nothing is left to emit then."""
    call = AggregateCall("count", (), BIGINT, False)
    schema = Schema((*SCHEMA.fields, Field("n", BIGINT)))
    spec = over_spec(
        "o",
        "over",
        schema,
        SCHEMA,
        (0,),
        (SortKey(column(2), False, False),),
        RUNNING,
        (call,),
        None,
        False,
        False,
    )
    rows = batch_of([((1, START, value, "a"), 1) for value in range(10)], SCHEMA.to_arrow())
    before_all = batch_of([((1, START, -1, "a"), 1)], SCHEMA.to_arrow())
    for piece_rows, sizes, changed in ((1 << 16, [10], [21]), (4, [4, 4, 2], [4, 4, 4, 4, 4, 1])):
        monkeypatch.setattr(LIMITS, "piece_rows", piece_rows)
        operator, out = build_operator(spec, JobOptions()), Collected()
        operator.open(context())
        rest = operator.on_batch(rows, 0, out)
        assert [batch.num_rows for batch in out.batches] == sizes[:1] and (rest is None) == (len(sizes) == 1)
        done(rest)
        assert [batch.num_rows for batch in out.batches] == sizes
        done(operator.on_batch(before_all, 0, out))
        assert [batch.num_rows for batch in out.batches[len(sizes) :]] == changed
        signs = [weight > 0 for batch in out.batches[len(sizes) :] for _, weight in listed(batch)]
        assert signs == sorted(signs), "all that is retracted goes before what replaces it"
        assert sorted(row[-1] for row in out.folded()) == list(range(1, 12))
