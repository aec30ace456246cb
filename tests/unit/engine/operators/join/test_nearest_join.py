"""The nearest join: DuckDB's rows at the end and at barriers, whatever is retracted, restored and rescaled; state
of both sides, not of their pairs; keys that expire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.client.session import Session
from penstock.planner.logical.joins.nearest_join import NearestJoin
from tests.generated.queries.generated.data import DUPLICATES, NULLS
from tests.generated.queries.generated.pieces import made
from tests.generated.queries.generated.trial import CUTS, Arena, Manner, check
from tests.harness.direct.feeds import Feed, Feeds
from tests.harness.direct.job import DirectJob, planned
from tests.harness.length import of_length
from tests.unit.engine.operators.test_state_ttl import TABLES, TTL_MS, Driven

MANNERS = (Manner(1, 9, CUTS), Manner(2, 1, (10,), 3), Manner(1, 3, CUTS, 2))
VARIANTS = (0, NULLS.start, DUPLICATES.start)
GROUPS = "(SELECT k, {c} AS o, count(*) AS n, max(v) AS m FROM {right} AS q GROUP BY k, {c})"
ASOF = f"SELECT a.id, b.n, b.m FROM {{left}} AS a ASOF {{kind}}JOIN {GROUPS} AS b ON a.k = b.k AND a.{{c}} {{sign}} b.o"
FIRST = (
    "SELECT a.id, (SELECT b.s FROM {right} AS b WHERE b.k = a.k AND b.{c} {sign} a.{c} ORDER BY b.{c} {way}, b.v"
    " DESC NULLS LAST, b.s NULLS FIRST LIMIT 1) AS x FROM {left} AS a"
)
WIDE = "CAST(%s AS DECIMAL(30, 4))"
CASES = [
    (ASOF, "u", "c", "v", ">=", ""),
    (ASOF, "c", "u", "ts", "<", "LEFT "),
    (ASOF, "t", "e", "ts", ">", ""),
    (ASOF, "w", "u", "v", "<=", "LEFT "),
    (FIRST, "u", "w", "v", "<=", ""),
    (FIRST, "c", "u", "v", ">", ""),
    (FIRST, "t", "c", "ts", "<", ""),
    (ASOF, "u", "c", "x", ">", "LEFT "),
    (FIRST, "c", "u", "x", ">=", ""),
    (ASOF, "u", "c", "s", ">=", ""),
    (ASOF, "c", "u", "s", "<", "LEFT "),
    (FIRST, "u", "w", "s", ">", ""),
    (ASOF.replace("a.{c}", WIDE % "a.{c}").replace("b.o", WIDE % "b.o"), "u", "c", "x", ">", "LEFT "),
    (ASOF.replace("a.{c}", WIDE % "a.{c}").replace("b.o", WIDE % "b.o"), "c", "u", "v", "<=", ""),
    (ASOF.replace("a.k = b.k AND ", "").replace("k, ", ""), "u", "c", "v", ">=", "LEFT "),
    (ASOF.replace("a.k =", "CAST(a.k AS BIGINT) ="), "c", "u", "s", ">=", ""),
    (ASOF.replace("b.o", "b.o + INTERVAL '9' SECOND"), "t", "c", "ts", ">", ""),
]


@pytest.mark.longer
@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_rows_are_duckdbs(number: int) -> None:
    template, left, right, column, sign, kind = CASES[number]
    way = "DESC" if sign in ("<", "<=") else "ASC"
    text = template.format(left=left, right=right, c=column, sign=sign, kind=kind, way=way)
    # in brief each query is run in one of the manners
    for place, variant in enumerate(VARIANTS):
        arena = Arena.of(variant)
        try:
            nodes = planned(arena.session, text).laid.walk()
            assert any(isinstance(node, NearestJoin) for node in nodes)
            for manner in of_length(MANNERS[(number + place) % 3 :][:1], MANNERS):
                assert check(arena, made("query", text), manner)
        finally:
            arena.close()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), lambda n: n),
        (pa.string(), lambda n: f"at {n:06d}"),
        (pa.binary(), lambda n: b"at %06d" % n),
        (pa.decimal128(30, 2), lambda n: Decimal(n - 600) * 10**20),
    ],
    ids=["number", "text", "bytes", "wide decimal"],
)
def test_state_is_that_of_both_sides(kind: pa.DataType, value: Callable[[int], object]) -> None:
    """600 rows of one key on each side: their pairs would be 180,000."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("k", pa.int32()), ("v", kind)])
    tables = {
        name: Feed(schema, (tuple(((n, 1, value(2 * n + odd)), 1) for n in range(600)), ()))
        for name, odd in (("l", 1), ("r", 0))
    }
    session, feeds = Session({"execution.runtime-mode": "streaming"}), Feeds(tables, batch_rows=50)
    feeds.register(session)
    query = "SELECT l.id, r.id AS other FROM l ASOF JOIN r ON l.k = r.k AND l.v >= r.v"
    job = DirectJob(planned(session, query).graph, feeds, batch_rows=50)
    job.advance(1 << 50)
    # the distinct values of l, and both tables twice: in the nearest join and in the join above
    assert sum(job.barrier().rows().values()) <= 6 * 600
    assert job.finish() == {(n, n): 1 for n in range(600)}
    session.close()


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb"})
    for statement in session.parse(TABLES):
        session.run(statement)
    yield session
    session.close()


def test_a_key_without_rows_expires_on_both_sides(session: Session) -> None:
    join = Driven(session, NearestJoin, "SELECT a.v, b.v AS w FROM a ASOF JOIN b ON a.k = b.k AND a.v >= b.v")
    assert join.feed([(1, 10), (2, 10)], port=0) == []
    join.pass_time(TTL_MS // 2)
    assert join.feed([(1, 7)], port=1) == [((1, 10, 1, 7), 1)]
    join.pass_time(TTL_MS // 2 + 200)
    assert (join.expired, join.entries) == (1, 2), "a row of either side renews its key"
    assert join.feed([(1, 9), (2, 3)], port=1) == [((1, 10, 1, 7), -1), ((1, 10, 1, 9), 1)]
    again = join.operator
    join.start()
    join.go_on_from(again)
    join.pass_time(2 * TTL_MS)
    assert (join.expired, join.entries) == (4, 0)


def test_texts_of_keys_that_have_expired_are_found_again(session: Session) -> None:
    query = (
        "SELECT a.v, b.v AS w FROM a ASOF JOIN b ON a.k = b.k AND CAST(a.v AS STRING) > CAST(b.v AS STRING)"
    )
    join = Driven(session, NearestJoin, query)
    # the values are texts: 9 is above 10
    assert join.feed([(1, 9, "9"), (2, 10, "10")], port=0) == []
    assert [(row[1], row[4], weight) for row, weight in join.feed([(1, 10, "10")], port=1)] == [(9, 10, 1)]
    join.pass_time(2 * TTL_MS)
    assert (join.expired, join.entries) == (3, 0)
    assert join.feed([(1, 10, "10"), (1, 9, "9"), (1, 95, "95")], port=1) == []
    found = join.feed([(1, 9, "9"), (1, 96, "96"), (1, 1, "1")], port=0)
    assert sorted((row[1], row[4], weight) for row, weight in found) == [(9, 10, 1), (96, 95, 1)]
