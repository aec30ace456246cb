"""EXPLAIN WHY ROW on generated queries. Sufficiency: over its input rows alone a result row comes out again, as
often, where no input row reaches the result on two ways. Relevance: without them a monotone query has it no
longer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BOOLEAN, Array, Double, Float, Map, Row
from penstock.client.session import Session
from penstock.client.statements.explain_why import count_rows, input_rows
from penstock.client.statements.explained_query import run_bounded
from penstock.planner.binder.binder import Binder
from penstock.planner.expressions.nodes import Call, Column, Literal
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.provenance.lineage import trace_lineage
from penstock.planner.provenance.restrictions import Restriction, restrict
from tests.generated.queries.generated.data import DELAY_S, feeds
from tests.generated.queries.generated.queries import generated

QUERIES = 200
_COLUMNS = "id BIGINT NOT NULL, k INT, s STRING, v BIGINT, x DECIMAL(8, 2), ts TIMESTAMP(6)"
_TIMED = f", WATERMARK FOR ts AS ts - INTERVAL '{DELAY_S}' SECOND"


class Tables:
    """Tables over files, of all rows or of some."""

    def __init__(self, root: Path, variant: int) -> None:
        self.root = root
        self.rows = {name: feed.table().combine_chunks() for name, feed in feeds(variant).items()}
        self.session = Session({})
        for name in self.rows:
            (root / name).mkdir()
            timed = _TIMED if name in ("t", "e", "c") else ""
            (statement,) = self.session.parse(
                f"CREATE TABLE {name} ({_COLUMNS}{timed}) WITH ('connector' = 'filesystem', "
                f"'path' = '{root / name}', 'format' = 'parquet')"
            )
            self.session.run(statement)
        self.fill(lambda name, rows: rows)

    def fill(self, kept: Callable[[str, pa.Table], pa.Table]) -> None:
        for name, rows in self.rows.items():
            pq.write_table(kept(name, rows), self.root / name / "rows.parquet")

    def plan(self, query: str) -> LogicalPlan:
        (statement,) = self.session.parse(query)
        return Binder(self.session.catalog, self.session.settings).bind_query(statement.node)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    made = Tables(tmp_path_factory.mktemp("why"), 1)
    yield made
    made.session.close()


def same_row(plan: LogicalPlan, row: dict[str, object]) -> tuple[Restriction, ...]:
    """Restrict a plan to the rows that equal one row in all columns with an exact equality."""
    conditions = []
    for index, (field, value) in enumerate(zip(plan.schema, row.values(), strict=True)):
        if isinstance(field.type, Array | Map | Row | Double | Float):
            continue
        literal = Literal(field.type, value is None, value=value)
        column = Column(field.type, field.nullable, index=index, name=field.name)
        conditions.append(
            Restriction(Call(BOOLEAN, False, function="null_safe_equal", args=(column, literal)))
        )
    return tuple(conditions)


def one_way(plan: LogicalPlan) -> bool:
    """Whether an input row reaches the result on one way: no table is read twice, no window overlaps another."""
    nodes = list(plan.walk())
    tables = [node.table.name for node in nodes if isinstance(node, Scan)]
    overlapping = any(isinstance(node, WindowTable) and node.window.overlapping for node in nodes)
    return len(tables) == len(set(tables)) and not overlapping


def monotone(plan: LogicalPlan) -> bool:
    """Whether fewer input rows give no other rows: nothing that ranks, pads, or looks for what is not there."""

    def is_monotone(node: LogicalPlan) -> bool:
        match node:
            case BinaryJoin(kind=kind):
                return kind in (JoinKind.INNER, JoinKind.SEMI)
            case Aggregate(keys=keys):
                return bool(keys)
            case WindowTable(window=window):
                return not window.merging
        return isinstance(
            node, Scan | Values | Filter | Project | Union | WindowAggregate | WatermarkAssign | Unnest
        )

    return all(map(is_monotone, plan.walk()))


def check(tables: Tables, query: str, dice: random.Random, drop: int = 0) -> Counter[str]:
    """Check one row of a query. ``drop``: leave out so many of its input rows, for a negative control."""
    pipeline = tables.session.pipeline
    tables.fill(lambda name, rows: rows)
    plan = tables.plan(query)
    rows = run_bounded(pipeline, plan)
    if not rows.num_rows:
        return Counter(empty=1)
    row = rows.rename_columns([str(i) for i in range(rows.num_columns)]).slice(
        dice.randrange(rows.num_rows), 1
    )
    restrictions = same_row(plan, row.to_pylist()[0])
    often = count_rows(pipeline, restrict(plan, restrictions))
    assert often >= 1, query
    places: dict[str, set[int]] = {name: set() for name in tables.rows}
    for found in input_rows(trace_lineage(plan, restrictions)):
        if found.position:
            read = run_bounded(pipeline, found.plan)
            places[found.table].update(read.column(read.num_columns - 1).to_pylist())
    for _ in range(drop):
        next(ids for ids in places.values() if ids).pop()

    def mask(name: str, rows: pa.Table) -> pa.Array:
        return pa.array([i in places[name] for i in range(rows.num_rows)], pa.bool_())

    tables.fill(lambda name, rows: rows.filter(mask(name, rows)))
    again = count_rows(pipeline, restrict(plan, restrictions))
    told = f"{query}\n{row.to_pylist()}: {places}"
    # on its other way an input row may make rows that were outranked or excluded, or exclude this one
    if not one_way(plan):
        met = Counter(other_ways=1, lost=int(again < often))
    else:
        assert again == often, f"{again} of {often} rows over the input rows alone: {told}"
        met = Counter(sufficient=1)
    tables.fill(lambda name, rows: rows.filter(pc.invert(mask(name, rows))))
    if not monotone(plan):
        return met
    without = count_rows(pipeline, restrict(plan, restrictions))
    assert without == 0 or not any(places.values()), f"{without} rows without the input rows: {told}"
    return met + Counter(relevant=1)


CONSTRUCTS = {
    "filter and expressions": "SELECT k + 1 AS k, upper(s) AS s FROM t WHERE v > 1 OR s IS NULL",
    "having": "SELECT k, sum(v) AS n FROM u GROUP BY k HAVING count(*) > 1",
    "groups of groups": "SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n",
    "distinct": "SELECT DISTINCT k, s FROM w",
    "inner join": "SELECT t.k, t.s, e.v FROM t JOIN e ON t.k = e.k AND t.v < e.v",
    "full join": "SELECT t.id, e.id AS other FROM t FULL JOIN e ON t.k = e.k AND t.v = e.v",
    "semi join": "SELECT id FROM t WHERE k IN (SELECT k FROM w WHERE v > 2)",
    "anti join": "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM w WHERE w.k = t.k AND w.v > t.v)",
    "scalar subquery": "SELECT id, v - (SELECT max(v) FROM w WHERE w.k = t.k) AS d FROM t",
    "rank": "SELECT * FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t) WHERE n <= 3",
    "top": "SELECT k, v, ts FROM t ORDER BY v DESC, k LIMIT 5 OFFSET 2",
    "frames": "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a, "
    "lag(s, 2) OVER (PARTITION BY k ORDER BY ts) AS b FROM t",
    "range": "SELECT id, count(*) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '9' SECOND PRECEDING "
    "AND CURRENT ROW) AS n FROM t",
    "tumble": "SELECT window_start, k, sum(v) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '20' SECONDS) "
    "GROUP BY window_start, window_end, k",
    "session": "SELECT window_start, k, count(*) AS n FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), "
    "INTERVAL '6' SECONDS) GROUP BY window_start, window_end, k",
    "union": "SELECT k, s FROM t UNION ALL SELECT k, s FROM e",
    "except": "SELECT k FROM t EXCEPT ALL SELECT k FROM w",
    "pattern": "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.id AS a, LAST(B.id) AS b "
    "PATTERN (A B+) DEFINE B AS B.v > A.v)",
}


@pytest.mark.parametrize("query", CONSTRUCTS.values(), ids=CONSTRUCTS)
def test_input_rows_of_a_construct_make_the_row(tables: Tables, query: str) -> None:
    assert check(tables, query, random.Random(len(query)))["sufficient"]


@pytest.mark.at_length
def test_input_rows_alone_make_the_row(tables: Tables) -> None:
    met: Counter[str] = Counter()
    for query in generated(0, QUERIES):
        if query.tree.sort == "some rows":
            continue
        try:
            met += check(tables, query.tree.text(), random.Random(query.seed))
        except PenstockError as error:
            if not error.code.startswith(("SQL-", "WHY-", "BND-5101")):
                raise
            met["refused"] += 1
    assert met["sufficient"] + met["other_ways"] >= QUERIES * 0.4, met
    assert met["relevant"] >= QUERIES * 0.05, met
    assert met["lost"] <= QUERIES * 0.02, met
    assert met["refused"] <= QUERIES * 0.2, met


def test_a_missing_input_row_is_seen(tables: Tables) -> None:
    query = "SELECT k, count(*) AS n FROM t GROUP BY k"
    assert check(tables, query, random.Random(1))["relevant"]
    with pytest.raises(AssertionError, match="0 of 1 rows"):
        check(tables, query, random.Random(1), drop=1)
