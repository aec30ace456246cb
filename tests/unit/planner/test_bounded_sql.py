"""Bounded plans as text: a select per node, columns by position, literals escaped by the dialect, refusals
with a sentence.
"""

from __future__ import annotations

from decimal import Decimal as PyDecimal

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.functions.aggregate import AGGREGATES
from penstock.catalog.functions.bitwise import BIT_FUNCTIONS
from penstock.catalog.functions.json import JSON
from penstock.catalog.functions.nested import LAMBDAS, NESTED
from penstock.catalog.functions.registry import SCALAR_FAMILIES
from penstock.catalog.functions.scalar import TRIES
from penstock.catalog.functions.string import DAYS, NUMBERS, WORDS
from penstock.catalog.functions.variant import VARIANTS
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING, TIME, TIMESTAMP, Decimal
from penstock.planner.expressions.nodes import AggregateCall, Call, Column, Expression, Literal, SortKey
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.over import Frame, FrameExclusion, FrameUnit, Over
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import TopN
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import (
    WINDOW_FUNCTIONS,
    CumulateWindow,
    HopWindow,
    TumbleWindow,
    Windowing,
)
from penstock.planner.sql_generator.duckdb.dialect import DuckDbFlavour, duckdb_sql
from penstock.planner.sql_generator.spark.dialect import SparkFlavour, spark_sql
from penstock.planner.sql_generator.support import speaks

SCHEMA = Schema((Field("year", INT), Field("a`b", STRING), Field("ts", TIMESTAMP)))
TABLE = CatalogTable("t", SCHEMA, SCHEMA, {"connector": "registered", "name": "t"})
SCAN = Scan(TABLE, (1, 0))


def test_a_select_per_node_and_literals_by_the_dialect() -> None:
    text = Literal(STRING, False, value="it's \\ 1; DROP TABLE x--")
    plan = Filter(SCAN, Call(BOOLEAN, True, function="equal", args=(Column(STRING, True, index=0), text)))
    assert spark_sql(plan).text == (
        "SELECT CAST(x.c0 AS STRING) AS c0, CAST(x.c1 AS INT) AS c1 FROM (SELECT x.c0 AS c0, x.c1 AS c1 "
        "FROM (SELECT x.`a``b` AS c0, x.`year` AS c1 FROM t_0 AS x) AS x "
        r"WHERE (x.c0 = 'it\'s \\ 1; DROP TABLE x--')) AS x"
    )
    assert duckdb_sql(plan).text.split("\n") == [
        'WITH n0 AS (SELECT x."a`b" AS c0, x."year" AS c1 FROM t_0 AS x),',
        "n1 AS (SELECT x.c0 AS c0, x.c1 AS c1 FROM n0 AS x WHERE (x.c0 = 'it''s \\ 1; DROP TABLE x--'))",
        "SELECT CAST(x.c0 AS TEXT) AS c0, CAST(x.c1 AS INT) AS c1 FROM n1 AS x",
    ]


def test_what_is_read_twice_or_lies_deep_is_a_cte_of_spark() -> None:
    twice = Filter(SCAN, Literal(BOOLEAN, False, value=True))
    joined = Join(twice, twice, JoinKind.INNER, (0,), (0,))
    assert spark_sql(joined).text.startswith("WITH n1 AS (SELECT ")
    assert spark_sql(joined).text.count(" n1 AS ") == 3
    deep: LogicalPlan = SCAN
    for _ in range(100):
        deep = Filter(deep, Literal(BOOLEAN, False, value=True))
    assert 2 <= spark_sql(deep).text.count(" AS (SELECT ") <= 4


def framed(frame: Frame) -> Over:
    year = Column(INT, True, index=1)
    known = Call(BOOLEAN, False, function="is_not_null", args=(year,))
    calls = (AggregateCall("sum", (year,), BIGINT), AggregateCall("last_value", (year,), INT, filter=known))
    return Over(SCAN, (), (SortKey(year),), frame, calls, ("s", "l"))


def test_frames_of_over_are_the_backends_own_or_rewritten() -> None:
    groups = framed(Frame(FrameUnit.GROUPS, -1, 0))
    words = duckdb_sql(groups).text
    assert words.count("GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW") == 2 and "IGNORE NULLS" in words
    # Spark has no GROUPS: a RANGE over the number of the group, and a place by the number of its row
    words = spark_sql(groups).text.lower()
    assert words.count("range between 1 preceding and current row") == 2
    assert "dense_rank() over" in words and "max_by(" in words and "groups" not in words
    without_ties = framed(Frame(FrameUnit.GROUPS, -1, 0, FrameExclusion.TIES))
    assert duckdb_sql(without_ties).text.count("EXCLUDE TIES") == 2
    with pytest.raises(PenstockError, match="BND-5101"):
        spark_sql(without_ties)
    # in the order of all columns, which a frame of ROWS needs, no row has peers
    with pytest.raises(PenstockError, match="BND-5101"):
        duckdb_sql(framed(Frame(FrameUnit.ROWS, -1, 0, FrameExclusion.TIES)))


def test_repeated_names_do_no_harm_and_one_table_is_one_relation() -> None:
    join = Join(SCAN, SCAN, JoinKind.LEFT, (1,), (1,))
    query = spark_sql(
        Project(join, (Column(STRING, True, index=0), Column(STRING, True, index=2)), ("same", "same"))
    )
    assert len(query.relations) == 1 and query.relations[0].columns == (0, 1)
    assert "FROM n0 AS l LEFT OUTER JOIN n0 AS r ON l.c1 = r.c1" in query.text


def test_the_order_stands_at_the_end_and_ties_are_broken() -> None:
    top = TopN(SCAN, (SortKey(Column(INT, True, index=1), True, False),), 3, 2)
    for query in (spark_sql(Sink(top, None)), duckdb_sql(Sink(top, None))):
        last = query.text.split("\n")[-1]
        assert (
            "ORDER BY x.c1 DESC" in last
            and "x.c0" in last.split("ORDER BY")[1]
            and last.endswith("LIMIT 3 OFFSET 2")
        )


def test_no_columns_keep_the_number_of_rows() -> None:
    query = spark_sql(Project(SCAN, (), ()))
    assert query.text.startswith("SELECT 1 AS nothing FROM (")


def test_every_function_has_a_spelling_or_is_refused() -> None:
    names = {function.name for family in SCALAR_FAMILIES.values() for function in family}
    ours = {
        "is_json",
        "json_length",
        "json_object",
        "json_array",
        "json_exists",
        "json_value",
        "json_query",
        "split_index",
        "histogram_bins",
    } | {function.name for function in VARIANTS}
    assert names - set(SparkFlavour.functions) == ours
    later = {
        function.name
        for function in (*NESTED, *LAMBDAS, *BIT_FUNCTIONS, *WORDS, *NUMBERS, *DAYS, *JSON, *TRIES, *VARIANTS)
    }
    assert names - set(DuckDbFlavour.functions) - later == {"initcap", "zeroifnull", "nullifzero"}
    assert {"field", "element", "size", "array_contains", "struct", "map_keys"} <= set(
        DuckDbFlavour.functions
    )
    bound_to_others = {"median", "collect_set", "count_if", "regr_count", "approx_count_distinct"}
    bound_to_others |= {"try_sum", "histogram_numeric", "json_arrayagg", "json_objectagg"}
    for flavour in (SparkFlavour, DuckDbFlavour):
        assert {function.name for function in AGGREGATES} - bound_to_others <= set(flavour.aggregates)


def test_a_refusal_says_what_and_what_else() -> None:
    plan = Project(
        SCAN, (Call(STRING, True, function="initcap", args=(Column(STRING, True, index=0),)),), ("v",)
    )
    with pytest.raises(PenstockError) as caught:
        duckdb_sql(plan)
    assert caught.value.code == "BND-5101"
    assert caught.value.message == "function initcap has no spelling on the bounded backend duckdb"
    assert "execution.runtime-mode" in (caught.value.hint or "")


@pytest.mark.parametrize(("path", "spelled"), [("$.a.b", True), ("$.a[0]", False), ("$.a[0].b", False)])
def test_spark_is_not_asked_for_an_element_of_json(path: str, spelled: bool) -> None:
    """Of a null element its get_json_object gives the text 'null'."""
    args = (Column(STRING, True, index=0), Literal(STRING, False, value=path))
    plan = Project(SCAN, (Call(STRING, True, function="get_json_object", args=args),), ("v",))
    assert speaks(plan, "spark") == spelled


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("repeat", (Literal(STRING, False, value="x"), Literal(INT, False, value=2_000_000_000))),
        ("space", (Column(INT, True, index=1),)),
        (
            "lpad",
            (
                Literal(STRING, False, value="x"),
                Column(INT, True, index=1),
                Literal(STRING, False, value="y"),
            ),
        ),
        (
            "replace",
            (
                Literal(STRING, False, value="x"),
                Literal(STRING, False, value="y"),
                Column(STRING, True, index=0),
            ),
        ),
    ],
)
def test_duckdb_is_not_asked_for_what_could_take_all_memory(
    function: str, args: tuple[Expression, ...]
) -> None:
    with pytest.raises(PenstockError, match="no small constant"):
        duckdb_sql(Project(SCAN, (Call(STRING, True, function=function, args=args),), ("v",)))


def test_literals_have_their_types() -> None:
    row = (
        Literal(Decimal(5, 2), False, value=PyDecimal("1.50")),
        Literal(STRING, True, value=None),
        Literal(INT, False, value=-3),
    )
    plan = Values((row,), Schema((Field("d", Decimal(5, 2)), Field("s", STRING), Field("n", INT))))
    assert (
        "VALUES (CAST('1.50' AS DECIMAL(5, 2)), CAST(NULL AS STRING), (-3)) AS x(c0, c1, c2)"
        in spark_sql(plan).text
    )
    assert SparkFlavour().kind(TIME).sql("spark") == "TIME(6)"


class _EngineOnlyWindow(TumbleWindow):
    """A kind that no backend has words for."""


def test_windows_without_words_are_refused() -> None:
    scan: LogicalPlan = Scan(TABLE, (2,))
    timed = WatermarkAssign(scan, 0, Column(TIMESTAMP, True, index=0))
    with pytest.raises(PenstockError, match="BND-5101") as caught:
        duckdb_sql(WindowTable(timed, _EngineOnlyWindow(0, 6_000_000)))
    assert caught.value.message == "window function TUMBLE has no spelling on the bounded backend duckdb"


@pytest.mark.parametrize("kind", list(WINDOW_FUNCTIONS.values()))
def test_windows_drop_rows_without_a_time(kind: type[Windowing]) -> None:
    scan: LogicalPlan = Scan(TABLE, (2,))
    timed = WatermarkAssign(scan, 0, Column(TIMESTAMP, True, index=0))
    plan = WindowTable(
        timed,
        kind(0, 6_000_000, 2_000_000 if kind in (HopWindow, CumulateWindow) else 0),
    )
    for query in (spark_sql(plan), duckdb_sql(plan)):
        assert "WHERE NOT x.c0 IS NULL" in query.text
        assert len(query.schema) == 4
