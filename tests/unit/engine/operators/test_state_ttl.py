"""State that lives for a time: each operator against what is to be expected of it, by a clock that moves
when told to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.client.session import Session
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.join.regular_join import RegularJoinOperator
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.joins.join import BinaryJoin, Join
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.statements.nodes import Query
from tests.harness.operators import Remembered, done, opened

TABLES = """
CREATE TABLE a (k BIGINT, v BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE b (k BIGINT, v BIGINT) WITH ('connector' = 'datagen');
CREATE VIEW ca AS SELECT k, v FROM (SELECT k, v, COUNT(*) AS n FROM a GROUP BY k, v) AS q WHERE n < 9;
CREATE VIEW cb AS SELECT k, v FROM (SELECT k, v, COUNT(*) AS n FROM b GROUP BY k, v) AS q WHERE n < 9;
"""
TTL_MS = 10_000
Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb"})
    for statement in session.parse(TABLES):
        session.run(statement)
    yield session
    session.close()


class Driven:
    """One operator of a query alone, on a manual clock; ``given`` is what its changes add up to, which is
    never less than nothing.
    """

    def __init__(self, session: Session, kind: type[LogicalPlan], sql: str, ttl: str = "10 s") -> None:
        session.settings.set("table.exec.state.ttl", ttl)
        [statement] = session.parse(sql)
        assert isinstance(statement.node, Query)
        graph = session.pipeline.plan(session.pipeline.bind(statement.node)).graph
        session.settings.reset("table.exec.state.ttl")
        assert graph is not None
        self.spec = [
            spec for chain in graph.chains for spec in chain.operators if isinstance(spec.node, kind)
        ][-1]
        self.clock = ManualClock(1_000_000)
        self.given: Counter[Row] = Counter()
        self.start()

    def start(self) -> None:
        self.operator: Operator = build_operator(self.spec, JobOptions())
        self.context: Context = opened(self.operator, self.clock)

    def go_on_from(self, earlier: Operator) -> None:
        """Begin with the state of another."""
        for name, state in self.operator.keyed_states().items():
            state.restore(earlier.keyed_states()[name].snapshot())

    def feed(self, rows: list[Row], weights: list[int] | None = None, port: int = 0) -> list[tuple[Row, int]]:
        schema = (
            (self.spec.node.left.schema, self.spec.node.right.schema)[port]
            if isinstance(self.spec.node, BinaryJoin)
            else self.spec.node.input.schema
        )
        columns = [
            pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema.to_arrow())
        ]
        batch = Batch(
            pa.RecordBatch.from_arrays(columns, schema=schema.to_arrow()),
            None if weights is None else np.array(weights),
        )
        out = Remembered()
        done(self.operator.on_batch(batch, port, out))
        self.operator.release(out)
        return self._take(out)

    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        out = Remembered()
        if self.operator.wants_ticks:
            self.operator.on_processing_time(self.clock.wall_ms(), out)
        assert not self._take(out), "nothing is given when state expires"

    def _take(self, out: Remembered) -> list[tuple[Row, int]]:
        found = []
        for batch in out.batches:
            rows = list(zip(*(column.to_pylist() for column in batch.rows.columns), strict=True))
            found += list(
                zip(rows, [1] * len(rows) if batch.weights is None else batch.weights.tolist(), strict=True)
            )
        for row, weight in found:
            self.given[row] += weight
        for row, _ in found:
            assert self.given[row] >= 0, f"{row} was taken back before it was given"
        return found

    @property
    def expired(self) -> int:
        return self.context.metrics.counters.get("expired", 0)

    @property
    def absent(self) -> int:
        return self.context.metrics.counters.get("retractions_of_expired", 0)

    @property
    def entries(self) -> int:
        return self.context.metrics.state_entries


def test_a_group_that_expired_begins_anew_as_an_insert(session: Session) -> None:
    groups = Driven(session, Aggregate, "SELECT k, SUM(v) AS s FROM a GROUP BY k")
    assert groups.feed([(1, 5), (2, 7)]) == [((1, 5), 1), ((2, 7), 1)]
    groups.pass_time(TTL_MS // 2)
    assert groups.feed([(1, 1)]) == [((1, 5), -1), ((1, 6), 1)]
    groups.pass_time(TTL_MS // 2 + 200)
    assert (groups.expired, groups.entries) == (1, 1)
    assert groups.feed([(1, 1), (2, 1)]) == [((1, 6), -1), ((1, 7), 1), ((2, 1), 1)]
    groups.pass_time(2 * TTL_MS)
    assert (groups.expired, groups.entries) == (3, 0)


def test_rows_taken_back_of_a_group_that_expired_are_counted(session: Session) -> None:
    groups = Driven(session, Aggregate, "SELECT k, SUM(v) AS s FROM ca GROUP BY k")
    groups.feed([(1, 5), (2, 7)])
    groups.pass_time(2 * TTL_MS)
    assert groups.feed([(1, 5), (1, 6), (2, 7)], [-1, 1, -1]) == [((1, 6), 1)]
    assert (groups.absent, groups.entries) == (2, 1)
    assert groups.feed([(1, 6), (1, 9)], [-1, -1]) == [((1, 6), -1)], "a group never holds less than no row"
    assert groups.entries == 0


def test_distinct_forgets(session: Session) -> None:
    rows = Driven(session, Aggregate, "SELECT DISTINCT k FROM a")
    column = len(rows.spec.node.input.schema)
    one = (1,) * column
    assert len(rows.feed([one])) == 1
    assert rows.feed([one]) == []
    rows.pass_time(2 * TTL_MS)
    assert len(rows.feed([one])) == 1


def test_each_side_of_a_join_lives_as_long_as_its_hint_says(session: Session) -> None:
    join = Driven(
        session, Join, "SELECT /*+ STATE_TTL('b' = '1 min') */ a.v, b.v AS w FROM a JOIN b ON a.k = b.k"
    )
    assert join.spec.facts.ttl_ms == (TTL_MS, 60_000)
    join.feed([(1, 10)], port=0)
    join.feed([(2, 20)], port=1)
    join.pass_time(2 * TTL_MS)
    assert join.feed([(1, 11)], port=1) == [], "its partner has expired"
    assert len(join.feed([(2, 21)], port=0)) == 1, "its partner lives longer"
    assert (join.expired, join.entries) == (1, 3)
    join.pass_time(120_000)
    assert join.entries == 0


class JoinReference:
    """An inner join of rows that live for a time, row by row."""

    def __init__(self) -> None:
        self.sides: tuple[dict[Row, list[int]], dict[Row, list[int]]] = ({}, {})
        self.given: Counter[Row] = Counter()
        self.absent = 0

    def feed(self, row: Row, weight: int, port: int, now_ms: int) -> None:
        own, other = self.sides[port], self.sides[1 - port]
        if weight < 0 and row not in own:
            self.absent += 1
            return
        for partner, (count, _) in other.items():
            if partner[0] == row[0]:
                pair = row + partner if port == 0 else partner + row
                self.given[pair] += weight * count
        count = own.get(row, [0, 0])[0] + weight
        if count:
            own[row] = [count, now_ms]
        else:
            del own[row]

    def expire(self, now_ms: int) -> None:
        for side in self.sides:
            for row in [row for row, (_, written) in side.items() if written + TTL_MS <= now_ms]:
                del side[row]


def test_a_join_is_that_of_rows_that_live(session: Session) -> None:
    join, reference = (
        Driven(session, Join, "SELECT a.*, b.k AS l, b.v AS w FROM ca AS a JOIN cb AS b ON a.k = b.k"),
        JoinReference(),
    )
    random = np.random.default_rng(7)
    for _ in range(400):
        row, port = (int(random.integers(3)), int(random.integers(4))), int(random.integers(2))
        weight = -1 if random.random() < 0.35 else 1
        join.feed([row], [weight], port)
        reference.feed(row, weight, port, join.clock.wall_ms())
        if random.random() < 0.4:
            join.pass_time(int(random.integers(1, 60)) * 100)
            reference.expire(join.clock.wall_ms())
        assert join.entries == sum(len(side) for side in reference.sides)
    assert +join.given == +reference.given and join.absent == reference.absent > 10 and join.expired > 50


OPERATORS: list[tuple[type[LogicalPlan], str]] = [
    (Aggregate, "SELECT k, SUM(v) AS s, MIN(v) AS least, COUNT(DISTINCT v) AS n FROM ca GROUP BY k"),
    (Join, "SELECT a.v, b.v AS w FROM ca AS a LEFT JOIN cb AS b ON a.k = b.k"),
    (Join, "SELECT a.v, b.v AS w FROM ca AS a FULL JOIN cb AS b ON a.k = b.k AND a.v <= b.v"),
    (Join, "SELECT k, v FROM ca AS a WHERE NOT EXISTS (SELECT 1 FROM cb AS b WHERE b.k = a.k)"),
    (Join, "SELECT k, v FROM ca AS a WHERE EXISTS (SELECT 1 FROM cb AS b WHERE b.k = a.k)"),
    (
        PartitionTop,
        "SELECT * FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n FROM a) AS q WHERE n <= 2",
    ),
    (
        PartitionTop,
        "SELECT * FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n FROM ca) AS q WHERE n <= 2",
    ),
    (Over, "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY v) AS s FROM ca"),
]


def _random_run(driven: Driven, seed: int, pause_ms: int, steps: int = 80) -> Counter[Row]:
    """Feed changes of rows that are there; return what was given for them."""
    random = np.random.default_rng(seed)
    insert_only = not isinstance(driven.spec.node, Join) and driven.spec.facts.insert_only
    there: list[list[Row]] = [[], []]
    for _ in range(steps):
        port = int(random.integers(2)) if isinstance(driven.spec.node, Join) else 0
        rows, weights = [], []
        for _ in range(int(random.integers(1, 4))):
            if there[port] and random.random() < 0.4 and not insert_only:
                row, weight = there[port].pop(int(random.integers(len(there[port])))), -1
            else:
                row, weight = (int(random.integers(4)), int(random.integers(6))), 1
                there[port].append(row)
            rows.append(row)
            weights.append(weight)
        driven.feed(rows, None if insert_only else weights, port)
        driven.pass_time(int(random.integers(0, 2)) * pause_ms)
    return +driven.given


@pytest.mark.parametrize(("kind", "sql"), OPERATORS)
def test_a_changelog_stays_well_formed_when_state_expires(
    session: Session, kind: type[LogicalPlan], sql: str
) -> None:
    for seed in range(3):
        driven = Driven(session, kind, sql)
        _random_run(driven, seed, TTL_MS // 4)
        driven.pass_time(3 * TTL_MS)
        assert driven.entries == 0 and driven.expired > 0
        assert all(not len(state.snapshot()) for state in driven.operator.keyed_states().values())


@pytest.mark.parametrize(("kind", "sql"), OPERATORS)
def test_a_time_that_is_long_enough_changes_nothing(
    session: Session, kind: type[LogicalPlan], sql: str
) -> None:
    lived, kept = Driven(session, kind, sql, "1 h"), Driven(session, kind, sql, "0")
    assert kept.operator.wants_ticks is False
    assert _random_run(lived, 5, TTL_MS // 4) == _random_run(kept, 5, TTL_MS // 4)
    assert lived.expired == 0 and kept.entries == lived.entries > 0


def test_versions_of_a_key_expire_together(session: Session) -> None:
    for name, key in (("o", ""), ("r", ", PRIMARY KEY (k) NOT ENFORCED")):
        columns = f"k BIGINT, v BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at{key}"
        session.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns}) WITH ('connector' = 'datagen')")
    sql = "SELECT o.v, r.v AS w FROM o JOIN r FOR SYSTEM_TIME AS OF o.at AS r ON o.k = r.k"
    session.settings.set("table.exec.state.ttl", "10 s")
    [statement] = session.parse(sql)
    assert isinstance(statement.node, Query)
    graph = session.pipeline.plan(session.pipeline.bind(statement.node)).graph
    session.settings.reset("table.exec.state.ttl")
    assert graph is not None
    [spec] = [
        spec for chain in graph.chains for spec in chain.operators if isinstance(spec.node, TemporalJoin)
    ]
    clock, out = ManualClock(1_000_000), Remembered()
    operator = build_operator(spec, JobOptions())
    context = opened(operator, clock)
    schema = spec.node.right.schema.to_arrow()
    rows = pa.RecordBatch.from_pylist(
        [{"k": k, "v": 10 * k, "at": datetime(1970, 1, 1, 0, 0, 5)} for k in (1, 2)], schema=schema
    )
    operator.on_batch(Batch(rows), 1, out)
    operator.on_watermark(10_000_000, out)
    clock.advance(TTL_MS // 2)
    operator.on_batch(
        Batch(
            pa.RecordBatch.from_pylist(
                [{"k": 2, "v": 21, "at": datetime(1970, 1, 1, 0, 0, 11)}], schema=schema
            )
        ),
        1,
        out,
    )
    clock.advance(TTL_MS // 2 + 200)
    assert operator.wants_ticks
    operator.on_processing_time(clock.wall_ms(), out)
    assert context.metrics.counters == {"expired": 1} and context.metrics.state_entries == 2
    clock.advance(TTL_MS)
    operator.on_processing_time(clock.wall_ms(), out)
    assert (
        context.metrics.counters == {"expired": 2} and context.metrics.state_entries == 0 and not out.batches
    )


def test_what_is_given_of_a_row_is_known_by_what_it_has_met(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RegularJoinOperator, "_known_matches", lambda self, batch, matched, port: matched)
    with pytest.raises(AssertionError, match="taken back before it was given"):
        for seed in range(10):
            _random_run(Driven(session, *OPERATORS[1]), seed, TTL_MS // 4)


@pytest.mark.parametrize(("kind", "sql"), OPERATORS)
def test_the_clock_goes_on_over_a_restore(session: Session, kind: type[LogicalPlan], sql: str) -> None:
    driven = Driven(session, kind, sql)
    _random_run(driven, 2, TTL_MS // 4)
    entries, earlier = driven.entries, driven.operator
    assert entries > 0
    driven.start()
    driven.go_on_from(earlier)
    _assert_same_state(driven.operator, earlier)
    driven.pass_time(TTL_MS // 2)
    driven.start()
    driven.go_on_from(earlier)
    driven.pass_time(TTL_MS // 2 + 200)
    assert driven.entries == 0 and driven.expired > 0, "what was written before a restore is as old after it"


def _assert_same_state(operator: Operator, earlier: Operator) -> None:
    for name, state in operator.keyed_states().items():
        table, before = state.snapshot(), earlier.keyed_states()[name].snapshot()
        assert "written_ms" in before.column_names
        assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, before.to_pylist()))
