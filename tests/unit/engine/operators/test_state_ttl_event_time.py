"""State in time that lives for a time: what has passed of partitions that have had no row for long enough
is forgotten, what waits is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.api.operator import Operator
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, Batch
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.over import Over
from tests.harness.layered import checkpoint
from tests.harness.operators import Remembered
from tests.unit.engine.operators.test_state_ttl import TTL_MS, Driven, Row

TABLE = """CREATE TABLE a (k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');"""
RUNNING = "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS s, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS l FROM a"
PAIRS = """SELECT k, x, y FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS x, B.v AS y
  AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE A AS A.v = 1, B AS B.v = 2)"""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb"})
    for statement in session.parse(TABLE):
        session.run(statement)
    yield session
    session.close()


class InTime(Driven):
    """Rows of a partition, a value and a second; the watermark is told by hand."""

    def at(self, *rows: tuple[int, int, int]) -> None:
        names = {"k": 0, "v": 1}
        schema = self.spec.node.input.schema.to_arrow()  # type: ignore[attr-defined]
        columns = []
        for field in schema:
            values = [row[names[field.name]] if field.name in names else row[2] * 1_000_000 for row in rows]
            columns.append(pa.array(values, pa.int64()).cast(field.type))
        self.operator.on_batch(Batch(pa.RecordBatch.from_arrays(columns, schema=schema)), 0, Remembered())

    def until(self, second: int) -> list[Row]:
        out = Remembered()
        self.operator.on_watermark(second * 1_000_000, out)
        return [row for row, _ in self._take(out)]

    def go_on_from(self, earlier: Operator) -> None:
        tables, items = checkpoint(earlier)
        for name, state in self.operator.list_states().items():
            state.restore_items(items[name])
        for name, keyed in self.operator.keyed_states().items():
            keyed.restore(tables[name])


def ends(rows: list[Row], *places: int) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[place] for place in places) for row in rows)


def test_totals_and_last_rows_of_a_partition_begin_anew(session: Session) -> None:
    over = InTime(session, Over, RUNNING)
    assert over.spec.facts.ttl_ms == TTL_MS
    over.at((1, 5, 1), (2, 7, 1))
    assert ends(over.until(2), 0, -2, -1) == [(1, 5, None), (2, 7, None)]
    over.pass_time(TTL_MS // 2)
    over.at((1, 1, 3))
    assert ends(over.until(4), 0, -2, -1) == [(1, 6, 5)]
    over.pass_time(TTL_MS // 2 + 200)
    assert (over.expired, over.entries) == (1, 1)
    over.at((1, 1, 5), (2, 1, 5))
    assert ends(over.until(6), 0, -2, -1) == [(1, 7, 1), (2, 1, None)]
    over.pass_time(2 * TTL_MS)
    assert (over.expired, over.entries) == (3, 0)
    assert all(state.snapshot().num_rows == 0 for state in over.operator.keyed_states().values())


def test_rows_that_wait_do_not_expire(session: Session) -> None:
    over = InTime(session, Over, RUNNING)
    over.at((1, 5, 1))
    over.until(2)
    over.at((1, 6, 9))
    for _ in range(4):
        over.pass_time(TTL_MS)
    assert (over.expired, over.entries) == (1, 1)
    assert ends(over.until(10), 0, -2, -1) == [(1, 6, None)]


def test_an_unfinished_match_is_forgotten(session: Session) -> None:
    for wait_ms, matches in ((TTL_MS // 2, [(1, 1, 2)]), (2 * TTL_MS, [])):
        match = InTime(session, MatchRecognize, PAIRS)
        match.at((1, 1, 1))
        assert match.until(2) == []
        match.pass_time(wait_ms)
        assert match.expired == (0 if matches else 1)
        match.at((1, 2, 3))
        assert match.until(4) == matches
        assert match.until(MAX_WATERMARK_US // 1_000_000) == [] and match.entries == 0


@pytest.mark.parametrize(("kind", "query"), [(Over, RUNNING), (MatchRecognize, PAIRS)])
def test_age_goes_on_over_a_restore(session: Session, kind: Any, query: str) -> None:
    first = InTime(session, kind, query)
    first.at((1, 1, 1), (2, 1, 1))
    first.until(2)
    checkpoint(first.operator)
    first.pass_time(TTL_MS - 3_000)
    first.at((2, 1, 3))
    first.until(4)
    second = InTime(session, kind, query)
    second.clock.advance(first.clock.wall_ms() - second.clock.wall_ms())
    second.go_on_from(first.operator)
    second.pass_time(4_000)
    assert second.expired == 1, "partition 1 is as old as it was"
    second.pass_time(TTL_MS)
    assert second.expired == 2


def test_state_that_lived_for_ever_begins_to_age(session: Session) -> None:
    ever = InTime(session, Over, RUNNING, ttl="0")
    ever.at((1, 1, 1))
    ever.until(2)
    second = InTime(session, Over, RUNNING)
    second.clock.advance(10 * TTL_MS)
    second.go_on_from(ever.operator)
    second.pass_time(TTL_MS // 2)
    assert second.expired == 0
    second.pass_time(TTL_MS)
    assert second.expired == 1


def test_what_time_frees_has_no_ttl(session: Session) -> None:
    ranged = "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '5' SECONDS PRECEDING AND CURRENT ROW) AS s FROM a"
    within = PAIRS.replace("PATTERN (A B)", "PATTERN (A B) WITHIN INTERVAL '5' SECONDS")
    for kind, query in ((Over, ranged), (MatchRecognize, within)):
        assert InTime(session, kind, query).spec.facts.ttl_ms == 0


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT k FROM a ORDER BY v LIMIT 3", "ORDER BY .. LIMIT keeps every row"),
        (PAIRS, "MATCH_RECOGNIZE uses 'table.exec.state.ttl'"),
    ],
)
def test_hints_that_make_no_sense_are_refused(session: Session, query: str, said: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.pipeline.bind(
            session.parse(query.replace("SELECT", "SELECT /*+ STATE_TTL('a' = '1 h') */"))[0].node
        )  # type: ignore[arg-type]
    assert refused.value.code == "SQL-1602" and refused.value.hint is not None and said in refused.value.hint
