"""The Table API gives the plans SQL gives, and errors with the text they are about."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.planner.binder.binder import Binder
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sink import Sink
from penstock.planner.statements.script import parse_statement
from penstock.planner.table_api.expressions import call, col, count, lit
from penstock.planner.table_api.table import Table, open_table
from penstock.planner.table_api.windows import cumulate, hop, session, tumble
from tests.unit.planner.frontend import plan_text, sample_catalog


@pytest.fixture
def binder() -> Binder:
    return Binder(sample_catalog(), Settings())


@pytest.fixture
def bid(binder: Binder) -> Table:
    return open_table("bid", binder)


def plan_of(sql: str) -> str:
    return plan_text(Binder(sample_catalog(), Settings()).bind_query(parse_statement(sql)))  # type: ignore[arg-type]


def same(table: Table, sql: str) -> None:
    assert plan_text(table.to_plan()) == plan_of(sql)
    round_trip(table)


def round_trip(table: Table) -> None:
    """Hold that the table's SQL binds to the table's plan, names and types included."""
    bound = Binder(sample_catalog(), Settings()).bind_query(parse_statement(table.to_sql()))  # type: ignore[arg-type]
    assert plan_text(table.to_plan()) == plan_text(bound), table.to_sql()
    assert [f.name for f in table.schema] == [f.name for f in bound.schema]
    assert [f.type for f in table.schema] == [f.type for f in bound.schema]


def test_filter_and_select(bid: Table) -> None:
    sql = "SELECT auction, price * 2 AS twice FROM bid WHERE price > 10 AND channel IS NOT NULL"
    same(
        bid.filter((col("price") > 10) & col("channel").is_not_null()).select(
            "auction", (col("price") * 2).alias("twice")
        ),
        sql,
    )
    same(bid.where("price > 10 AND channel IS NOT NULL").select("auction", "price * 2 AS twice"), sql)


def test_operators(bid: Table) -> None:
    same(
        bid.select(
            (-col("price") + 1 - col("auction") / 2 % 3).alias("a"),
            (~(col("price").between(1, 2) | (col("auction") == 3)) & (col("channel") != "x")).alias("b"),
            col("auction").isin(1, 2).alias("c"),
            col("channel").like("a%").alias("d"),
            col("price").cast("BIGINT").alias("e"),
            call("upper", col("channel")).alias("f"),
            lit("text").alias("g"),
        ),
        "SELECT -price + 1 - auction / 2 % 3 AS a, NOT (price BETWEEN 1 AND 2 OR auction = 3) AND channel <> 'x' AS b, auction IN (1, 2) AS c,"
        " channel LIKE 'a%' AS d, CAST(price AS BIGINT) AS e, upper(channel) AS f, 'text' AS g FROM bid",
    )


def test_groups(bid: Table) -> None:
    sql = "SELECT channel, COUNT(*) AS n, SUM(price) FILTER (WHERE price > 1) AS s FROM bid GROUP BY channel"
    same(
        bid.group_by("channel").select(
            "channel", count().alias("n"), col("price").sum().where(col("price") > 1).alias("s")
        ),
        sql,
    )
    same(bid.group_by("channel").aggregate("COUNT(*) AS n", "SUM(price) FILTER (WHERE price > 1) AS s"), sql)
    same(bid.aggregate("COUNT(*) AS n"), "SELECT COUNT(*) AS n FROM bid")


@pytest.mark.parametrize(
    ("window", "sql"),
    [
        (tumble("ts", "10 minutes"), "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTE)"),
        (
            tumble("ts", timedelta(hours=1), offset="5 minutes"),
            "TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '5' MINUTE)",
        ),
        (
            hop("ts", "1 minute", "1 hour"),
            "HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
        ),
        (
            cumulate("ts", "1 hour", "1 day"),
            "CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)",
        ),
        (
            session("ts", "5 minutes"),
            "SESSION(TABLE bid PARTITION BY channel, DESCRIPTOR(ts), INTERVAL '5' MINUTE)",
        ),
        (
            session("ts", "5 minutes", partition_by=["channel"]),
            "SESSION(TABLE bid PARTITION BY channel, DESCRIPTOR(ts), INTERVAL '5' MINUTE)",
        ),
    ],
)
def test_windows(bid: Table, window: object, sql: str) -> None:
    table = (
        bid.window(window)
        .group_by("channel")
        .select("window_start", "channel", col("price").max().alias("top"))
    )  # type: ignore[arg-type]
    same(
        table,
        f"SELECT window_start, channel, MAX(price) AS top FROM {sql} GROUP BY window_start, window_end, channel",
    )


def test_several_tables(binder: Binder, bid: Table) -> None:
    city = open_table("city", binder)
    same(
        bid.join(city, "bid.auction = city.size", how="left"),
        "SELECT * FROM bid LEFT JOIN city ON bid.auction = city.size",
    )
    same(
        bid.join(city, col("bid.channel") == col("city.name")).select("price", "country"),
        "SELECT price, country FROM (SELECT * FROM bid JOIN city ON channel = name) AS bid",
    )
    itself = bid.select("auction").join(bid.select("auction", "price"), "left.auction = right.auction")
    assert itself.columns == ["auction", "auction", "price"]
    same(
        bid.union(bid).distinct(),
        "SELECT DISTINCT * FROM (SELECT * FROM bid UNION ALL SELECT * FROM bid) AS bid",
    )


def test_order_and_columns(binder: Binder, bid: Table) -> None:
    city = open_table("city", binder)
    same(
        city.order_by("size DESC", col("name").asc(), limit=3, offset=1),
        "SELECT * FROM city ORDER BY size DESC, name LIMIT 3 OFFSET 1",
    )
    same(city.order_by(col("size").desc()), "SELECT * FROM city ORDER BY size DESC")
    same(bid.limit(5), "SELECT * FROM bid LIMIT 5")
    assert bid.drop("price", "ts").columns == ["auction", "bidder", "channel"]
    assert bid.with_columns("price * 2 AS twice").columns == [
        "auction",
        "bidder",
        "price",
        "channel",
        "ts",
        "twice",
    ]
    assert "price DECIMAL(10, 2)" in repr(bid)


def test_ends(binder: Binder) -> None:
    run: list[LogicalPlan] = []
    bid = open_table("bid", binder, lambda: SimpleNamespace(run_plan=lambda plan, *_: run.append(plan)))  # type: ignore[arg-type, return-value]
    bid.select("auction", "price", "channel").insert_into("totals")
    bid.execute()
    assert [type(plan) for plan in run] == [Sink, Sink]
    assert isinstance(run[0], Sink) and run[0].table is not None and run[0].table.name == "totals"
    with pytest.raises(PenstockError, match="no connection"):
        open_table("bid", binder).execute()


@pytest.mark.parametrize(
    ("build", "code", "text"),
    [
        (
            lambda t: t.select("auction", "prcie"),
            "SQL-1042",
            "  1 | auction, prcie\n    |          ^^^^^\nhint: did you mean",
        ),
        (lambda t: t.filter("price +"), "SQL-1001", "  1 | price +\n"),
        (lambda t: t.filter(col("prcie") > 1), "SQL-1042", 'did you mean "price"?'),
        (lambda t: t.filter("price"), "SQL-1103", "filter takes a BOOLEAN"),
        (lambda t: t.window(tumble("price", "1 minute")), "SQL-1701", "the time attribute is ts"),
        (lambda t: t.window(tumble("ts", "soon")), "SQL-1011", "'soon' is no interval"),
        (lambda t: t.group_by("channel").select("price"), "SQL-1061", "any_value(price)"),
        (lambda t: t.select(5), "SQL-1014", "lit(..)"),
        (lambda t: t.select("auction").to_sink("totals"), "SQL-1090", "id, total, label"),
        (lambda t: t.join(t, "auction = 1"), "SQL-1043", "auction"),
        (lambda t: t.join(t, "1 = 1", how="outr"), "SQL-1601", 'did you mean "outer"?'),
    ],
)
def test_errors(bid: Table, build: object, code: str, text: str) -> None:
    with pytest.raises(PenstockError) as caught:
        build(bid)  # type: ignore[operator]
    assert caught.value.code == code
    assert text in caught.value.render()


def test_unknown_table(binder: Binder) -> None:
    with pytest.raises(PenstockError) as caught:
        open_table("bidd", binder)
    assert caught.value.render() == 'error[SQL-1041]: table "bidd" does not exist\nhint: did you mean "bid"?'


def test_expressions_have_no_truth_value() -> None:
    with pytest.raises(TypeError, match="combine conditions with &"):
        bool(col("a") > 1)
