"""Rows of one processing time stand in the order they arrived in, whatever orders them: through restarts,
other parallelisms and old checkpoints.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.operators.factory import build_operator
from penstock.engine.state.state_snapshot import ARRIVED
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sort import TopN
from penstock.planner.statements.nodes import Query
from tests.harness.operator_specs import with_facts
from tests.unit.engine.operators.changelogs import Collected, batch_of, context, owners, restored, snapshots

Row = tuple[int, int]
Answer = Counter[tuple[Any, ...]]
START = datetime(2026, 1, 1)
TIMED = "(SELECT *, PROCTIME() AS p FROM t)"
_RANKED = (
    "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS r FROM {}) WHERE r <= {}"
)
_DAYS = f"TUMBLE(TABLE {TIMED}, DESCRIPTOR(p), INTERVAL '1000' DAYS)"


def of_parts(answer: Callable[[list[int]], list[tuple[Any, ...]]]) -> Callable[[list[Row]], Answer]:
    """An answer of rows as one of each key's values, in the order they arrived."""

    def of(rows: list[Row]) -> Answer:
        parts: dict[int, list[int]] = defaultdict(list)
        for k, v in rows:
            parts[k].append(v)
        return Counter((k, *values) for k, part in parts.items() for values in answer(part))

    return of


def falls(part: list[int]) -> list[tuple[Any, ...]]:
    found, i = [], 0
    while i + 1 < len(part):
        if part[i + 1] < part[i]:
            found.append((part[i], part[i + 1]))
            i += 1
        i += 1
    return found


# By name: a query, what runs it, columns of what that gives, and those as a function of the rows in the order
# they arrived.
CASES: dict[str, tuple[str, type[LogicalPlan], tuple[str, ...], Callable[[list[Row]], Answer]]] = {
    "number": (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p) FROM {TIMED}",
        Over,
        ("k", "v", "over1"),
        of_parts(lambda part: [(v, i + 1) for i, v in enumerate(part)]),
    ),
    "lag and rows": (
        f"SELECT *, LAG(v, 2) OVER (PARTITION BY k ORDER BY p), SUM(v) OVER (PARTITION BY k ORDER BY p ROWS 1 PRECEDING) FROM {TIMED}",
        Over,
        ("k", "v", "over1", "over2"),
        of_parts(
            lambda part: [
                (v, part[i - 2] if i > 1 else None, sum(part[max(i - 1, 0) : i + 1]))
                for i, v in enumerate(part)
            ]
        ),
    ),
    "lead": (
        f"SELECT *, LEAD(v) OVER (PARTITION BY k ORDER BY p) FROM {TIMED}",
        Over,
        ("k", "v", "over1"),
        of_parts(lambda part: [(v, part[i + 1] if i + 1 < len(part) else None) for i, v in enumerate(part)]),
    ),
    "last": (
        _RANKED.format("k", "p DESC", TIMED, 1),
        PartitionTop,
        ("k", "v"),
        of_parts(lambda part: [(part[-1],)]),
    ),
    "last three": (
        _RANKED.format("k", "p DESC", TIMED, 3),
        PartitionTop,
        ("k", "v"),
        of_parts(lambda part: [(v,) for v in part[-3:]]),
    ),
    "last of windows": (
        _RANKED.format("k, window_start, window_end", "p DESC", _DAYS, 2),
        PartitionTop,
        ("k", "v"),
        of_parts(lambda part: [(v,) for v in part[-2:]]),
    ),
    "top": (
        f"SELECT k, v, p FROM {TIMED} ORDER BY p DESC LIMIT 4",
        TopN,
        ("k", "v"),
        lambda rows: Counter(rows[-4:]),
    ),
    "falls": (
        f"SELECT * FROM {TIMED} MATCH_RECOGNIZE (PARTITION BY k ORDER BY p MEASURES A.v AS a, B.v AS b PATTERN (A B) DEFINE B AS B.v < A.v)",
        MatchRecognize,
        ("k", "a", "b"),
        of_parts(falls),
    ),
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "parallelism.default": "1"})
    session.register(
        "t", pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}), stream=True
    )
    yield session
    session.close()


def spec_of(session: Session, name: str) -> Any:
    text, kind, *_ = CASES[name]
    node = session.parse(text)[0].node
    assert isinstance(node, Query)
    graph = session.pipeline.plan(session.pipeline.bind(node)).graph
    assert graph is not None
    return next(spec for chain in graph.chains for spec in chain.operators if isinstance(spec.node, kind))


def rows_of(seed: int) -> list[Row]:
    dice = random.Random(seed)
    return [(dice.randint(1, 3), dice.randint(0, 30)) for _ in range(60)]


def at(time: datetime) -> int:
    return (time - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def answer(spec: Any, columns: tuple[str, ...], rows: list[Row], seed: int, *, old: bool = False) -> Answer:
    """Give rows to an operator in batches of one time, stopped and started in other numbers. ``old``: by
    checkpoints that know nothing of arrival.
    """
    dice, out, now = random.Random(seed), Collected(), START
    schema = (spec.schema if isinstance(spec.node, TopN) else spec.node.input.schema).to_arrow()
    keys = () if isinstance(spec.node, TopN) else spec.node.partition
    operators = [restored(build_operator(spec, JobOptions()), context(), ({}, {}))]
    windows = {
        name: START + timedelta(days=days)
        for days, name in enumerate(("window_start", "window_time", "window_end"))
    }
    while rows:
        size = dice.randint(1, 9)
        batch = batch_of(
            [
                (tuple({"k": k, "v": v, "p": now, **windows}[name] for name in schema.names), 1)
                for k, v in rows[:size]
            ],
            schema,
        )
        owner, rows = owners(batch.rows, keys, len(operators)), rows[size:]
        for subtask, operator in enumerate(operators):
            mine = batch.filter(pa.array(owner == subtask))
            if mine.num_rows:
                operator.on_batch(mine, 0, out)
        if dice.random() < 0.4:
            now += timedelta(milliseconds=1)
            for operator in operators:
                operator.on_watermark(at(now), out)
        if dice.random() < 0.5:
            keyed, items = snapshots(operators)
            if old:
                keyed = {
                    name: [table.drop_columns(list({ARRIVED} & {*table.column_names})) for table in tables]
                    for name, tables in keyed.items()
                }
            count = 1 if isinstance(spec.node, TopN) else dice.randint(1, 3)
            operators = [
                restored(build_operator(spec, JobOptions()), context(i, count), (keyed, items))
                for i in range(count)
            ]
    for operator in operators:
        operator.on_watermark(MAX_WATERMARK_US, out)
    names = spec.schema.to_arrow().names
    found: Answer = Counter()
    for row, weight in out.folded().items():
        found[tuple(row[names.index(name)] for name in columns)] += weight
    return found


@pytest.mark.parametrize("name", CASES)
def test_rows_of_one_time_stand_as_they_arrived(session: Session, name: str) -> None:
    spec, (_, _, columns, expected) = spec_of(session, name), CASES[name]
    for seed in range(12):
        rows = rows_of(seed)
        assert answer(spec, columns, rows, seed) == expected(rows), seed


@pytest.mark.parametrize("name", CASES)
def test_an_order_by_values_would_be_seen(session: Session, name: str) -> None:
    """The negative control: ties broken by all columns give another answer."""
    spec, (_, _, columns, expected) = with_facts(spec_of(session, name), arrival=0), CASES[name]
    assert any(answer(spec, columns, rows_of(seed), seed) != expected(rows_of(seed)) for seed in range(12))


@pytest.mark.parametrize("name", CASES)
def test_checkpoints_that_know_no_arrival_are_restored(session: Session, name: str) -> None:
    """No row is lost or doubled; those held by then stand as the checkpoint has them."""
    spec, (_, _, columns, expected) = spec_of(session, name), CASES[name]
    rows = rows_of(1)
    found = answer(spec, columns, rows, 1, old=True)
    assert found.total() == expected(rows).total() or name == "falls"


def test_time_by_events_still_breaks_ties_by_values(session: Session) -> None:
    text = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) FROM t"
    node = session.parse(text)[0].node
    assert isinstance(node, Query)
    graph = session.pipeline.plan(session.pipeline.bind(node)).graph
    assert graph is not None
    assert [
        spec.facts.arrival
        for chain in graph.chains
        for spec in chain.operators
        if isinstance(spec.node, Over)
    ] == [0]
