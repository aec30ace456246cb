"""The Table API as SQL: each method's plan is that of its SQL text, whatever names and values others wrote."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.planner.binder.binder import Binder
from penstock.planner.statements.script import parse_statement
from penstock.planner.table_api.expressions import case, col, count, expr, ifelse, lit, rank, row_number
from penstock.planner.table_api.table import Table, open_table
from penstock.planner.table_api.windows import session, tumble
from tests.unit.planner.frontend import plan_text, sample_catalog
from tests.unit.planner.test_table_api import round_trip, same

ODD = ["select", "it's", 'a "b"', "a `b`", "Ünï", "日本", "a.b", "a -- b", "a\nb", "*", "count", "1"]


@pytest.fixture
def binder() -> Binder:
    return Binder(sample_catalog(), Settings())


@pytest.fixture
def bid(binder: Binder) -> Table:
    return open_table("bid", binder)


@pytest.fixture
def city(binder: Binder) -> Table:
    return open_table("city", binder)


def test_columns_of_a_table(bid: Table) -> None:
    same(bid.filter(bid.price > 10).select(bid["auction"]), "SELECT auction FROM bid WHERE price > 10")
    assert "price" in dir(bid)
    with pytest.raises(AttributeError, match='did you mean "price"'):
        bid.prcie  # noqa: B018
    with pytest.raises(PenstockError) as caught:
        bid["prcie"]
    assert caught.value.code == "SQL-1042"
    # what libraries ask for is no column; _repr_html_ is there for notebooks
    assert not hasattr(bid, "__array__") and hasattr(bid, "_repr_html_")


def test_new_columns(bid: Table) -> None:
    same(
        bid.with_columns("price * 2 AS twice", half=bid.price / 2),
        "SELECT *, price * 2 AS twice, price / 2 AS half FROM bid",
    )
    same(bid.with_columns(price=bid.price + 1), "SELECT * EXCEPT (price), price + 1 AS price FROM bid")
    same(bid.select("auction", cost="price * 2"), "SELECT auction, price * 2 AS cost FROM bid")
    assert bid.rename(cost="price").columns == ["auction", "bidder", "cost", "channel", "ts"]
    round_trip(bid.rename(cost="price").drop("ts").distinct())
    round_trip(bid.select(bid.price * 2, "price * 3", "count(*) OVER (ORDER BY ts)"))


def test_filters(bid: Table) -> None:
    same(
        bid.filter("auction IN (SELECT size FROM city)", "price > 1"),
        "SELECT * FROM bid WHERE auction IN (SELECT size FROM city) AND price > 1",
    )
    assert bid.filter(bid.price > 1).to_sql() == "SELECT *\nFROM bid\nWHERE price > 1"
    # each condition on its own: an OR does not reach into the next
    same(bid.filter("price > 1 OR price < 0").filter(~bid.auction.isin(1, 2)),
         "SELECT * FROM bid WHERE (price > 1 OR price < 0) AND NOT (auction IN (1, 2))")  # fmt: skip


def test_groups_by_keyword(bid: Table) -> None:
    same(
        bid.group_by("channel").agg(n=count(), total=bid.price.sum(), buyers=col("bidder").count_distinct()),
        "SELECT channel, count(*) AS n, sum(price) AS total, count(DISTINCT bidder) AS buyers FROM bid GROUP BY channel",
    )
    same(
        bid.group_by("price > 5 AS high", odd=bid.auction % 2).agg(n="COUNT(*)"),
        "SELECT price > 5 AS high, auction % 2 AS odd, COUNT(*) AS n FROM bid GROUP BY price > 5, auction % 2",
    )
    # a filter of groups is one of rows of the result
    same(
        bid.group_by("channel").agg(n=count()).filter(col("n") > 1),
        "SELECT * FROM (SELECT channel, count(*) AS n FROM bid GROUP BY channel) WHERE n > 1",
    )
    same(bid.agg(n=count()), "SELECT count(*) AS n FROM bid")


def test_predicates_and_calls(bid: Table) -> None:
    channel, price, ts = bid.channel, bid.price, bid.ts
    same(
        bid.select(
            a=bid.auction.isin([1, 2]),
            b=channel.notin("x", "y"),
            c=channel.isin([]),
            d=channel.strip().upper().contains("A"),
            e=channel.substr(2, 3).concat("-", channel.lower()),
            f=channel.replace("a", "b").startswith("b") | channel.endswith("c"),
            g=ts.year() * 100 + ts.month(),
            h=ts.truncate("HOUR"),
            i=ts.strftime("yyyy-MM"),
            j=price.fill_null(0).round(1),
            k=ifelse(price > 1, "high", "low"),
            m=case((price > 2, 2), (price > 1, 1)),
            n=channel.try_cast("INT"),
            o=channel.ilike("A%") & channel.rlike("^a"),
            p=channel.length(),
        ),
        "SELECT auction IN (1, 2) AS a, NOT (channel IN ('x', 'y')) AS b, FALSE AS c,"
        " contains(upper(trim(channel)), 'A') AS d, substring(channel, 2, 3) || '-' || lower(channel) AS e,"
        " startswith(replace(channel, 'a', 'b'), 'b') OR endswith(channel, 'c') AS f,"
        " year(ts) * 100 + month(ts) AS g, date_trunc('HOUR', ts) AS h, date_format(ts, 'yyyy-MM') AS i,"
        " round(coalesce(price, 0), 1) AS j, CASE WHEN price > 1 THEN 'high' ELSE 'low' END AS k,"
        " CASE WHEN price > 2 THEN 2 WHEN price > 1 THEN 1 END AS m, TRY_CAST(channel AS INT) AS n,"
        " channel ILIKE 'A%' AND channel RLIKE '^a' AS o, char_length(channel) AS p FROM bid",
    )
    round_trip(
        bid.select(
            a=channel.regexp_extract("a(.)", 1), b=price.abs().floor(), c=price.ceil(), d=price.nullif(0),
            e=ts.day() + ts.hour() + ts.minute() + ts.second(), f=channel.lstrip().rstrip(), g=~(price > 1),
        )
    )  # fmt: skip
    round_trip(bid.agg(a=price.mean(), b=price.stddev(), c=channel.first(), d=channel.last(), e=price.max()))


def test_windows_of_rows(bid: Table) -> None:
    same(
        bid.select(
            n=row_number().over(partition_by="channel", order_by="ts"),
            total=bid.price.sum().over(partition_by=[bid.channel], order_by="ts", rows=(3, 0)),
            hour=count().over(order_by="ts", range_=(timedelta(hours=1), 0)),
            all=bid.price.max().over(order_by=bid.ts, rows=(None, 0)),
            before=bid.price.lag(2).over(order_by="ts"),
        ),
        "SELECT row_number() OVER (PARTITION BY channel ORDER BY ts) AS n,"
        " sum(price) OVER (PARTITION BY channel ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS total,"
        " count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) AS hour,"
        " max(price) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS all_,"
        " lag(price, 2) OVER (ORDER BY ts) AS before FROM bid".replace("all_", "`all`"),
    )
    round_trip(bid.select(a=expr("sum(price)").over(partition_by="upper(channel) -- text", order_by="ts")))
    with pytest.raises(TypeError, match="goes with a call"):
        (bid.price + 1).over(order_by="ts")


def test_top(bid: Table) -> None:
    same(
        bid.top(3, "price DESC", partition_by="channel", rank="n"),
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY channel ORDER BY price DESC) AS n FROM bid)"
        " WHERE n <= 3",
    )
    assert bid.deduplicate("channel", order_by="ts").columns == bid.columns
    round_trip(bid.deduplicate(["channel", "bidder"], order_by=col("ts").desc()))
    assert bid.rename(row_num="price").top(1, "row_num").columns == bid.rename(row_num="price").columns
    round_trip(bid.with_columns(r=rank().over(order_by="ts")))


def test_joins(bid: Table, city: Table) -> None:
    same(
        bid.join(city, bid.channel == city["name"]).select(bid["price"], city.country),
        "SELECT bid.price, city.country FROM bid JOIN city ON bid.channel = city.name",
    )
    same(
        bid.join(city, ["bid.channel = city.name", bid.auction == city["size"]], how="full"),
        "SELECT * FROM bid FULL JOIN city ON bid.channel = city.name AND bid.auction = city.size",
    )
    for how, word in (("semi", "LEFT SEMI"), ("anti", "LEFT ANTI"), ("right", "RIGHT"), ("left", "LEFT")):
        same(
            bid.join(city, bid.channel == city["name"], how),
            f"SELECT * FROM bid {word} JOIN city ON bid.channel = city.name",
        )
    same(bid.cross_join(city), "SELECT * FROM bid CROSS JOIN city")
    totals = bid.group_by("auction").agg(total=bid.price.sum())
    same(
        bid.join(totals, on="auction"),
        "SELECT * FROM bid JOIN (SELECT auction, sum(price) AS total FROM bid GROUP BY auction) AS t USING (auction)",
    )
    # both are called bid: the columns still find their sides, also of the table that the other is made of
    joined = bid.join(totals, bid.auction == totals.auction).select(bid["auction"], totals["total"])
    same(
        joined,
        "SELECT bid.auction, total FROM bid"
        " JOIN (SELECT auction, sum(price) AS total FROM bid GROUP BY auction) AS t ON bid.auction = t.auction",
    )
    first, second = bid.alias("a"), bid.alias("b")
    same(
        first.join(second, first.auction == second.bidder).select("a.price", other=second["price"]),
        "SELECT a.price, b.price AS other FROM bid AS a JOIN bid AS b ON a.auction = b.bidder",
    )
    three = bid.join(city, bid.channel == city["name"]).join(second, second.auction == bid.auction)
    assert three.columns == [*bid.columns, *city.columns, *bid.columns]
    round_trip(three.filter(city["size"] > 1).select(bid["price"], second["ts"].alias("x")))
    # a condition before the join stays on its own side, although both sides have its column
    same(
        bid.filter("price > 1").join(second, "bid.auction = b.bidder"),
        "SELECT * FROM (SELECT * FROM bid WHERE price > 1) AS bid JOIN bid AS b ON bid.auction = b.bidder",
    )


@pytest.mark.parametrize(
    ("build", "code", "text"),
    [
        (lambda b, c: b.join(c), "SQL-1001", 'how="cross"'),
        (lambda b, c: b.join(c, "1 = 1", "cross"), "SQL-1001", "takes no condition"),
        (lambda b, c: b.join(c, "channel = nam"), "SQL-1042", '"name"'),
        (lambda b, c: b.with_columns(x="a AS b"), "SQL-1001", "a AS b"),
        (lambda b, c: b.rename(x="prcie"), "SQL-1042", '"price"'),
        (lambda b, c: b.select(lit(object())), "SQL-1014", "object"),
        (lambda b, c: b.filter("price > 1) OR (1 = 1"), "SQL-1001", "price > 1)"),
        (
            lambda b, c: b.match_recognize(order_by="ts", pattern="A) DEFINE (", define={}),
            "SQL-1001",
            "A) DEFINE (\n    |  ^",
        ),
        (
            lambda b, c: b.match_recognize(
                order_by="ts", pattern="A", define={"A": "A.price > 1"}, after="x"
            ),
            "SQL-1601",
            "PAST LAST ROW",
        ),
    ],
)
def test_errors(bid: Table, city: Table, build: object, code: str, text: str) -> None:
    with pytest.raises(PenstockError) as caught:
        build(bid, city)  # type: ignore[operator]
    assert caught.value.code.startswith(code)
    assert text in caught.value.render()


def test_set_operations(bid: Table, city: Table) -> None:
    names, channels = city.select("name"), bid.filter("price > 1").select("channel")
    same(channels.union(names), "SELECT channel FROM bid WHERE price > 1 UNION ALL SELECT name FROM city")
    same(
        names.union(channels, distinct=True).select("name"),
        "SELECT name FROM (SELECT name FROM city UNION SELECT channel FROM bid WHERE price > 1)",
    )
    same(names.intersect(channels), "SELECT name FROM city INTERSECT SELECT channel FROM bid WHERE price > 1")
    same(names.difference(names), "SELECT name FROM city EXCEPT SELECT name FROM city")
    # a limit belongs to its side
    round_trip(names.order_by("name").limit(2).union(names.limit(1)).union(names))


def test_order(bid: Table, city: Table) -> None:
    same(bid.order_by("price DESC").limit(3), "SELECT * FROM bid ORDER BY price DESC LIMIT 3")
    same(city.order_by("size").select("name"), "SELECT name FROM city ORDER BY size")
    same(city.order_by("size").filter("size > 1"), "SELECT * FROM city WHERE size > 1 ORDER BY size")
    same(city.order_by("size").limit(3, 1), "SELECT * FROM city ORDER BY size LIMIT 3 OFFSET 1")
    same(
        city.order_by("size").group_by("country").agg(n=count()),
        "SELECT country, count(*) AS n FROM city GROUP BY country",
    )
    same(bid.order_by("ts"), "SELECT * FROM bid ORDER BY ts")
    # the order of columns that the select drops
    same(
        bid.order_by("price DESC").select("auction").limit(3),
        "SELECT auction FROM bid ORDER BY price DESC LIMIT 3",
    )
    with pytest.raises(PenstockError, match="after the first select"):
        city.order_by("size").select("name").filter("name > 'a'")
    # the table under an order is not ordered, so it may be part of a query
    ordered = city.filter("size > 1").order_by("size")
    for table in (ordered, ordered.select("name", "size")):
        round_trip(table)
        round_trip(bid.join(table, bid.channel == table["name"]))
        round_trip(table.union(table))
        round_trip(table.alias("x").distinct())
        round_trip(table.top(1, "size"))
    round_trip(city.order_by("size").join(city.alias("b"), on="name"))


def test_windows_over_queries(bid: Table) -> None:
    high = bid.filter("price > 1").select("channel", "ts")
    same(
        high.window(tumble("ts", "1 minute")).group_by("channel").agg(n=count()),
        "SELECT window_start, window_end, channel, count(*) AS n FROM TUMBLE(TABLE (SELECT channel, ts FROM bid"
        " WHERE price > 1), DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, channel",
    )
    round_trip(high.window(session("ts", timedelta(seconds=1.5))).group_by("channel").agg(n=count()))
    round_trip(bid.window(tumble("ts", "1 hour 30 minutes", offset="1 minute")).filter("price > 1"))


def test_match_recognize(bid: Table) -> None:
    found = bid.match_recognize(
        partition_by="channel",
        order_by="ts",
        measures={"low": "FIRST(B.price)", "it's": col("C.price") * 2},
        pattern="A B+ C",
        define={"B": "B.price < A.price", "C": col("C.price") > col("A.price")},
        after="to next row",
        within="1 hour",
        subset={"S": ["A", "B"]},
    )
    same(
        found,
        "SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY channel ORDER BY ts MEASURES FIRST(B.price) AS low, C.price * 2 AS `it's`"
        " ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C) WITHIN INTERVAL '1' HOUR SUBSET S = (A, B)"
        " DEFINE B AS B.price < A.price, C AS C.price > A.price)",
    )
    again = bid.filter("price > 1").match_recognize(
        order_by="ts", pattern="A B", define={"B": "B.price > 1"}, all_rows=True, after="TO LAST B"
    )
    round_trip(again.group_by("channel").agg(n=count()))


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -5, 2**31 - 1, -(2**31), 2**31, -(2**63), 10**37, 1.5, -0.0, 1e300, 1e-7, 5e-324,
        Decimal("1.50"), Decimal("-0.001"), Decimal("100"), Decimal("0E-10"),
        "", "it's", 'a "b" `c`', "a\nb -- c /* d", "'; DROP TABLE bid; --", "\\n", "日本 Ü 🎉", "\0", b"", b"\x00'",
        date(1, 1, 1), date(9999, 12, 31), time(12, 30, 0, 5), datetime(2020, 1, 2, 3, 4, 5, 6),
        datetime(2020, 1, 2, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=timezone(timedelta(hours=-5.5))),
        timedelta(0), timedelta(days=-3, microseconds=1), timedelta(days=10000, hours=1),
    ],
    ids=repr,
)  # fmt: skip
def test_values(bid: Table, value: object) -> None:
    round_trip(bid.select(v=lit(value), w=col("channel").cast("STRING")))
    round_trip(bid.select(v=col("price") - -1, w=lit(-1) - -1).filter(col("w") == -2))


@pytest.mark.parametrize("name", ODD)
def test_names(bid: Table, name: str) -> None:
    """Any text is a column, an alias of a table, a key: quoted, never pasted."""
    table = bid.select(bid.price.alias(name), "ts", "channel")
    round_trip(table)
    round_trip(table.filter(table[name] > 1).group_by(table[name]).agg(n=count(), m=table[name].max()))
    round_trip(table.with_columns(x=table[name] + 1).drop(name))
    round_trip(table.top(1, table[name].desc(), partition_by=table[name]))
    other = table.alias(name)
    round_trip(table.join(other, table[name] == other[name]).select(table[name], other["ts"]))
    round_trip(table.join(other, on=[name]))
    round_trip(table.window(tumble("ts", "1 minute")).group_by(table[name]).agg(n=count()))


def test_one_expression_in_two_trees(bid: Table) -> None:
    high = bid.price > 1
    same(
        bid.filter(high).select(high.alias("a"), (high & high).alias("b")),
        "SELECT price > 1 AS a, price > 1 AND price > 1 AS b FROM bid WHERE price > 1",
    )


def test_long_chains(bid: Table) -> None:
    """Twenty steps are twenty levels of SQL, within the limit of nesting."""
    table = bid
    for at in range(20):
        table = table.with_columns(**{f"c{at}": col("price") + at})
    round_trip(table)
    text = table.to_sql()
    parsed = Binder(sample_catalog(), Settings()).bind_query(parse_statement(text))  # type: ignore[arg-type]
    assert plan_text(parsed) == plan_text(table.to_plan())
