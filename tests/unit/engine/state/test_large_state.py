"""State, results and checkpoints hold more text than one array of Arrow can: the limit is moved down to
where a few rows pass it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BigInt, String
from penstock.client.session import Session
from penstock.engine.api.row_pieces import LIMITS, TooLarge, in_halves, parts_by_group, take_rows
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import Fold, summed
from penstock.engine.checkpoint.snapshot_format import read_pieces
from penstock.engine.checkpoint.snapshot_writer import SnapshotWriter
from penstock.engine.connectors.in_process.materialized_views import MaterializedContents
from penstock.engine.exchange.batch_concat import concat_batches
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.tagged_index import StringIndex
from penstock.engine.state.rows.event_time_buffer import EventTimeBuffer
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.rows.row_difference import difference
from penstock.engine.state.rows.row_store import RowStore
from penstock.engine.state.rows.table_contents import Contents
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.state_snapshot import FrozenState
from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot, failure_in
from penstock.planner.expressions.nodes import Column, SortKey
from tests.harness.patience import await_that

TEXT = pa.schema([("k", pa.int64()), ("x", pa.string())])


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "array_bytes", 4_000)
    monkeypatch.setattr(LIMITS, "chunk_bytes", 1_000)
    monkeypatch.setattr(LIMITS, "piece_bytes", 600)
    monkeypatch.setattr(LIMITS, "batch_bytes", 800)


def rows(first: int, count: int, width: int = 50) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers, pa.int64()), pa.array([f"{n}" * width for n in numbers])], schema=TEXT
    )


def test_a_store_merges_no_chunk_past_the_limit_and_says_what_is_too_large() -> None:
    store = RowStore(TEXT)
    ids = np.concatenate([store.append(rows(n, 2)) for n in range(10, 90, 2)])
    assert max(chunk.nbytes for chunk in store._chunks.batches) <= LIMITS.chunk_bytes
    frozen = list(store.freeze(ids).pieces(np.arange(ids.size)))
    assert [k for *_, piece in frozen for k in piece.column(0).to_pylist()] == list(range(10, 90)) and len(
        frozen
    ) > 4
    assert store.take(ids[[3, 0, 3]]).column(0).to_pylist() == [13, 10, 13]
    with pytest.raises(TooLarge, match="fit into one batch"):
        store.take(np.tile(ids, 2))
    bounds = list(store.pieces(ids))
    assert (
        bounds[0][0] == 0
        and bounds[-1][1] == ids.size
        and max(store.sizes(ids[a:b]).sum() for a, b in bounds) <= LIMITS.piece_bytes
    )
    store.drop(ids[5:])
    assert store.take(ids[:5]).column(0).to_pylist() == [10, 11, 12, 13, 14]


def test_keys_longer_than_an_array_are_read_in_halves() -> None:
    index = StringIndex(pa.string())
    slots = index.lookup_or_insert(pa.array(["a" * 900 + str(n) for n in range(9)]))
    with pytest.raises(TooLarge):
        index.keys(slots)
    parts = in_halves(index.keys, slots)
    assert [key for part in parts for key in part.to_pylist()] == ["a" * 900 + str(n) for n in range(9)]


def test_rows_of_a_table_are_taken_in_any_order() -> None:
    table = pa.Table.from_batches([rows(0, 30), rows(30, 40), rows(70, 30)])
    places = np.array(random.Random(1).choices(range(100), k=150))
    found = take_rows(table, places)
    assert found.column("k").to_pylist() == places.tolist()
    assert found.column("x").to_pylist() == [f"{n}" * 50 for n in places]
    assert max(batch.nbytes for batch in found.to_batches()) <= LIMITS.chunk_bytes + 400
    assert take_rows(table, places[:0]).schema == table.schema


def test_parts_of_a_snapshot_keep_the_rows_of_a_key_group_together() -> None:
    groups = np.repeat(np.arange(30), 3).astype(np.uint16)
    table = pa.table({"key_group": groups, "x": ["x" * 60] * 90})
    parts = parts_by_group(table)
    assert pa.concat_tables(parts).equals(table) and len(parts) > 5
    ends = [(part.column(0)[0].as_py(), part.column(0)[-1].as_py()) for part in parts]
    assert all(last < first for (_, last), (first, _) in pairwise(ends))
    one = parts_by_group(pa.table({"key_group": np.zeros(90, np.uint16), "x": ["x" * 60] * 90}))
    assert len(one) > 5 and sum(part.num_rows for part in one) == 90


@pytest.mark.parametrize("of", ["one key", "many keys"])
def test_a_checkpoint_is_written_and_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch, of: str) -> None:
    state, back = (
        JoinSide(
            TEXT,
            [] if of == "one key" else [0],
            KeyIndex([] if of == "one key" else [pa.int64()]),
            8,
            retracting=False,
            counts=False,
        )
        for _ in range(2)
    )
    slots = np.zeros(80, np.int64) if of == "one key" else np.arange(80)
    for n in range(10, 90, 10):
        state.change(Batch(rows(n, 10)), slots[n - 10 : n], np.zeros(10, np.int64))
    storage, steps = MemoryStorage(), [""]

    def noted(step: str) -> None:
        if steps[-1] != step:
            steps.append(step)

    def pieces() -> Iterator[pa.Table]:
        for piece in state.freeze(None)():
            steps.append("piece")
            assert piece.nbytes < 3 * LIMITS.batch_bytes
            yield piece

    for module in (
        "penstock.engine.checkpoint.snapshot_format",
        "penstock.engine.checkpoint.snapshot_writer",
    ):
        monkeypatch.setattr(f"{module}.BLOCK_BYTES", 256)
    append, read, reads = storage.append, storage.read, []
    monkeypatch.setattr(storage, "append", lambda name, data: (noted("append"), append(name, data)))
    monkeypatch.setattr(
        storage, "read", lambda name, offset, length: (reads.append(length), read(name, offset, length))[1]
    )
    written = SnapshotWriter(storage, 1, 1).write(
        1, TaskId(0, 0), [OperatorSnapshot("op", {"rows": FrozenState(pieces)})]
    )
    assert steps.count("piece") > 4 and "piece piece" not in " ".join(steps[2:]), (
        "the next piece is made when the last one is written"
    )
    for part in read_pieces(storage, written, written.keyed, 0, 8):
        back.restore(part)
    assert (
        len(reads) > 5
        and max(reads) < 4 * LIMITS.batch_bytes
        and back.snapshot().sort_by("c0").equals(state.snapshot().sort_by("c0"))
    )


def test_results_are_summed_and_repeated() -> None:
    fold = Fold(TEXT)
    for n in range(0, 60, 10):
        fold.add(Batch(rows(n, 10)))
    fold.add(Batch(rows(0, 20), np.tile([-1, 1], 10)))
    assert sorted(fold.rows().column("k").to_pylist()) == sorted(
        [*range(1, 20, 2), *range(1, 20, 2), *range(20, 60)]
    )
    weighted = fold.weighted()
    assert len(weighted) > 1 and sum(batch.num_rows for batch in weighted) == fold.rows().num_rows - 10
    table, weights = summed(
        pa.Table.from_batches([rows(n, 10) for n in (0, 50, 0, 70, 90)]), np.repeat([1, 1, -1, 1, 1], 10)
    )
    assert (
        table.column("k").to_pylist() == [*range(50, 60), *range(70, 80), *range(90, 100)]
        and (weights == 1).all()
    )


def test_a_materialized_view_holds_more_than_an_array() -> None:
    view, state, again = MaterializedContents("v", TEXT), Contents(TEXT, 0), Contents(TEXT, 0)
    view.begin(1, 0, 1, [])
    for number, n in enumerate(range(10, 90, 20), 1):
        state.add(Batch(rows(n, 20)))
        view.stage(number, [Batch(rows(n, 20))])
        view.complete(number)
    again.restore(state.snapshot())
    # the job goes on from a checkpoint: the rows there were are weighed against those it begins with
    view.begin(2, 0, 1, again.weighted())
    view.stage(9, [Batch(rows(10, 1), np.array([-1]))])
    view.complete(9)
    version, parts = view.state()
    assert len(parts) > 1 and sorted(k for part in parts for k in part.rows.column(0).to_pylist()) == list(
        range(11, 90)
    )
    assert view.pin(0) == version == 5 and view.snapshot(5).num_rows == 79
    newer = view.since(4)
    assert newer is not None and [batch.num_rows for batch in newer[1]] == [1]


def test_an_exchange_joins_no_more_than_fits() -> None:
    batches = concat_batches([Batch(rows(n, 10), np.arange(1, 11)) for n in range(10, 90, 10)])
    assert len(batches) > 1 and [k for batch in batches for k in batch.rows.column(0).to_pylist()] == list(
        range(10, 90)
    )
    assert all(batch.weights is not None and batch.weights.size == batch.num_rows for batch in batches)


LINES = "'connector' = 'filesystem', 'format' = 'json', 'source.replay' = 'true'"
QUERIES = {
    "join": "SELECT a.k, a.x, b.x AS y FROM a JOIN b ON a.k = b.k",
    "left join": "SELECT a.k, a.x, b.x AS y FROM a LEFT JOIN b ON a.k = b.k AND a.n < b.n",
    "first of each": "SELECT k, x FROM (SELECT k, x, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n DESC, x) AS r FROM a) AS t WHERE r = 1",
    "last by a number": "SELECT k, m, x FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY m ORDER BY n) AS r FROM a) AS t WHERE r <= 2",
    "group by text": "SELECT x, COUNT(*) AS n, MAX(x) AS m FROM a GROUP BY x",
    "largest text": "SELECT k, MAX(x) AS m, MIN(x) AS o FROM a GROUP BY k",
    "texts together": "SELECT m, ARRAY_AGG(x) AS xs FROM a GROUP BY m",
    "distinct": "SELECT DISTINCT x, k FROM a",
    "over": "SELECT k, x, SUM(n) OVER (PARTITION BY k ORDER BY n) AS s FROM a",
    "windows": "SELECT window_end, x, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '20' SECOND))"
    " GROUP BY window_start, window_end, x",
    "interval join": "SELECT a.k, a.x, b.x AS y FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '9' SECOND AND a.ts",
    "sorted": "SELECT k, x FROM a ORDER BY x DESC, k",
    "sorted by time": "SELECT k, x, ts FROM a ORDER BY ts, x",
    "first of all": "SELECT k, x FROM a ORDER BY x DESC, k LIMIT 50",
    "first of changes": "SELECT x, COUNT(*) AS n FROM a GROUP BY x ORDER BY x LIMIT 30 OFFSET 5",
    "limit of changes": "SELECT COUNT(*) AS n FROM (SELECT x, COUNT(*) AS c FROM a GROUP BY x LIMIT 30) AS t",
    "temporal join": "SELECT a.k, a.x, v.x AS y FROM a JOIN v FOR SYSTEM_TIME AS OF a.ts ON a.k = v.k",
    "over in time": "SELECT k, x, LAG(x) OVER (PARTITION BY k ORDER BY ts) AS y FROM a",
    "early windows": "SELECT window_end, k, MAX(x) AS m FROM TABLE(HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '5' SECOND,"
    " INTERVAL '20' SECOND)) GROUP BY window_start, window_end, k EMIT CHANGES EVERY INTERVAL '1' SECOND",
    "match": "SELECT k, m, o FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.x AS m, B.x AS o"
    " AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE B AS B.x > A.x) AS t",
}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    dice = random.Random(3)
    session = Session(
        {"bounded.backend": "duckdb", "execution.runtime-mode": "streaming", "table.dml-sync": "true"}
    )
    for name in "ab":
        (tmp_path / name).mkdir()
        lines = [
            {
                "k": dice.randrange(12),
                "m": dice.randrange(3),
                "n": i,
                "x": f"{dice.randrange(40)}" * 40,
                "ts": f"2026-01-01 00:00:{i:02d}",
            }
            for i in range(60)
        ]
        (tmp_path / name / "a.json").write_text(
            "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
        )
        columns = "k INT, m INT, n INT, x STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
        session.execute(f"CREATE TABLE {name} ({columns}) WITH ({LINES}, 'path' = '{tmp_path}/{name}')")
    session.execute(
        f"CREATE TABLE v ({columns}, PRIMARY KEY (k) NOT ENFORCED) WITH ({LINES}, 'path' = '{tmp_path}/b')"
    )
    return session


@pytest.mark.parametrize("name", QUERIES)
def test_answers_do_not_depend_on_what_an_array_holds(
    session: Session, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found = list(map(repr, session.execute(QUERIES[name]).final_rows().to_pylist()))
    for limit in ("array_bytes", "chunk_bytes", "piece_bytes", "batch_bytes"):
        monkeypatch.setattr(LIMITS, limit, 2**31 - 1)
    expected = list(map(repr, session.execute(QUERIES[name]).final_rows().to_pylist()))
    assert expected and (found == expected if name == "sorted" else sorted(found) == sorted(expected))


def test_too_large_is_a_fault_that_says_what_to_do() -> None:
    error = TooLarge(5_000_000_000)
    assert isinstance(error, PenstockError) and "5,000,000,000 bytes" in str(error) and error.hint


def test_a_key_whose_values_fit_no_checkpoint_is_an_error_of_the_checkpoint() -> None:
    session = Session({"execution.checkpointing.interval": "20 ms", "table.dml-sync": "false"})
    try:
        session.execute(
            "CREATE TABLE s (x STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '2000', "
            "'fields.x.length' = '40')"
        )
        session.execute("CREATE TABLE counts (n BIGINT) WITH ('connector' = 'blackhole')")
        job = session.execute("INSERT INTO counts SELECT COUNT(DISTINCT x) FROM s").job
        assert job is not None
        await_that(lambda: job.state.terminal)
        error = job.error
        assert error is not None and error.code == "RUN-2023"
        assert "too large for a checkpoint" in error.message and "state" in (error.detail or "")
    finally:
        session.close()


def test_what_arrow_refuses_to_hold_is_told_in_the_same_words() -> None:
    for cause in (
        pa.ArrowInvalid("offset overflow while concatenating arrays"),
        pa.ArrowCapacityError("array"),
    ):
        error = failure_in("aggregate", cause)
        assert error.code == "RUN-2023" and error.hint and not error.retriable and error.__cause__ is cause
    assert failure_in("aggregate", pa.ArrowInvalid("another")).code == "RUN-2900"


def test_waiting_rows_are_merged_to_what_fits_and_fall_due_in_as_many_batches() -> None:
    waiting = EventTimeBuffer(TEXT, [0], 0, 8)
    for n in range(10, 90):
        waiting.add(Batch(rows(n, 1)))
    assert len(waiting) == 80
    assert sorted(
        k for batch in waiting.snapshot().select(["c0"]).to_batches() for k in batch.column(0).to_pylist()
    ) == list(range(10, 90))
    (due,) = waiting.due(20)
    assert sorted(due.rows.column(0).to_pylist()) == list(range(10, 20)) and len(waiting) == 70
    waiting.add(Batch(rows(30, 20), np.full(20, -1)))
    pieces = waiting.due(1_000)
    assert len(pieces) > 1 and not len(waiting) and waiting.due(1_000) == []
    left = [k for piece in pieces for k in piece.rows.column(0).to_pylist()]
    assert sorted(left) == [*range(20, 30), *range(50, 90)], (
        "what is taken back of another batch is cancelled"
    )


def test_rows_are_sorted_and_compared_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [rows(n, 10) for n in (50, 10, 70, 30)]
    text, number = (Column(kind, True, index=i) for i, kind in ((1, String()), (0, BigInt())))
    orders = [
        RowOrder((SortKey(text, True, False),), TEXT, "UTC"),
        RowOrder((SortKey(number, False, False),), TEXT, "UTC"),
    ]
    found = [order.sorted_pieces(pieces).tolist() for order in orders]
    before, after = [Batch(pieces[0]), Batch(pieces[1])], [Batch(pieces[1]), Batch(pieces[3])]
    changes = difference(before, after)
    assert len(difference([], [Batch(piece) for piece in pieces])) > 1
    monkeypatch.setattr(LIMITS, "array_bytes", 2**31 - 1)
    whole = pa.concat_batches(pieces)
    assert found == [order.sorted(whole).tolist() for order in orders]
    (expected,) = difference(before, after)
    assert [
        (k, w) for c in changes for k, w in zip(c.rows.column(0).to_pylist(), c.weights, strict=True)
    ] == list(zip(expected.rows.column(0).to_pylist(), expected.weights, strict=True))
