"""Generated auctions: a row is a function of its number and the seed, whatever the splits, cuts and
columns; disorder stays within its bound.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.generated import NEXMARK_TABLES
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.reading import Row, drain, open_source, read, resume_everywhere, table_of

COUNT = 1_000


def table(kind: str, **options: str) -> Any:
    given = {key.replace("_", "-"): value for key, value in options.items()}
    return table_of(
        NEXMARK_TABLES[kind], {"connector": "nexmark", "table": kind, "events.num": str(COUNT)} | given
    )


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("kind", ["person", "auction", "bid", "events"])
def test_same_seed_same_rows_whatever_the_splits_and_cuts(kind: str) -> None:
    rows = read(table(kind))
    assert len(rows) == {"person": 20, "auction": 60, "bid": 920, "events": 1_000}[kind]
    assert rows == read(table(kind), batch=7)
    assert (
        in_order(rows)
        == in_order(read(table(kind, splits="3")))
        == in_order(read(table(kind, splits="4", out_of_order="80 ms"), batch=11))
    )
    assert rows != read(table(kind, seed="2"))
    assert rows != read(table(kind, out_of_order="80 ms"))
    names = list(NEXMARK_TABLES[kind])
    assert [{names[1]: row[names[1]]} for row in rows] == read(table(kind), columns=[names[1]])


def test_every_split_goes_on_where_it_was() -> None:
    for kind in ("bid", "events"):
        given = table(kind, splits="2", out_of_order="60 ms") if kind == "bid" else table(kind, splits="2")
        resume_everywhere(given, read(given, batch=90), batch=90)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 49, 50, 51, 149, 150, 154])
@pytest.mark.parametrize("splits", ["1", "2", "3"])
def test_kinds_are_the_events_apart(count: int, splits: str) -> None:
    options = {"events.num": str(count), "splits": splits}
    rows = read(table("events", **options))
    assert len(rows) == count
    for number, kind in enumerate(("person", "auction", "bid")):
        own = [row[kind] for row in rows if row["event_type"] == number]
        assert own == read(table(kind, **options))
        assert all(row[kind] is None for row in rows if row["event_type"] != number)


@pytest.mark.parametrize(("splits", "bound_ms"), [(1, 5), (1, 50), (2, 50), (3, 173)])
def test_rows_stand_behind_later_ones_at_most_so_far(splits: int, bound_ms: int) -> None:
    worst = timedelta(0)
    for split in range(splits):
        options = {"events.num": "10000", "splits": str(splits), "out-of-order": f"{bound_ms} ms"}
        rows = drain(open_source(table("bid", **options), subtask=split, parallelism=splits)).rows
        latest = rows[0]["dateTime"]
        for row in rows:
            latest = max(latest, row["dateTime"])
            worst = max(worst, latest - row["dateTime"])
    assert worst <= timedelta(milliseconds=bound_ms)
    assert worst > timedelta(milliseconds=bound_ms / 3)


def test_the_model_holds() -> None:
    options = {"events.num": "20000"}
    people, auctions, bids = (read(table(kind, **options)) for kind in ("person", "auction", "bid"))
    assert [row["id"] for row in people] == list(range(1000, 1400))
    assert [row["id"] for row in auctions] == list(range(1000, 2200))
    assert all(
        row["dateTime"] < row["expires"] and row["initialBid"] < row["reserve"] and 10 <= row["category"] < 15
        for row in auctions
    )
    assert all(1000 <= row["seller"] < 1410 for row in auctions)
    assert all(
        1000 <= row["auction"] < 2210 and 1000 <= row["bidder"] < 1410 and 100 <= row["price"] <= 100_000_000
        for row in bids
    )
    hot = sum(row["auction"] % 100 == 0 for row in bids) / len(bids)
    assert 0.48 < hot < 0.53, "half of the bids are for the hot auction"
    assert 0.72 < sum(row["bidder"] % 100 == 1 for row in bids) / len(bids) < 0.78, (
        "three of four bids are by the hot bidder"
    )
    assert len({(row["channel"], row["url"]) for row in bids}) == len({row["channel"] for row in bids}), (
        "a channel has one address"
    )


def test_ends_only_where_a_number_of_events_is_given() -> None:
    assert boundedness(table("bid")) is Boundedness.REPLAY
    assert (
        boundedness(table_of(NEXMARK_TABLES["bid"], {"connector": "nexmark", "table": "bid"}))
        is Boundedness.UNBOUNDED
    )


@pytest.mark.parametrize(
    ("columns", "options", "code", "hint"),
    [
        ("auctions BIGINT", "'table' = 'bid'", "SQL-1510", "auction"),
        ("auction INT", "'table' = 'bid'", "SQL-1509", "BIGINT"),
        ("bid ROW<prize BIGINT>", "'table' = 'events'", "SQL-1510", "price"),
        ("price BIGINT", "'table' = 'bids'", "SQL-1505", "bid"),
        ("price BIGINT", "'table' = 'bid', 'event.num' = '5'", "SQL-1503", "events.num"),
    ],
)
def test_what_the_site_does_not_have_is_refused_where_it_is_declared(
    columns: str, options: str, code: str, hint: str
) -> None:
    session = Session({})
    try:
        with pytest.raises(PenstockError) as caught:
            session.execute(f"CREATE TEMPORARY TABLE t ({columns}) WITH ('connector' = 'nexmark', {options})")
        assert caught.value.code == code
        assert hint in str(caught.value.hint)
        assert caught.value.span is not None
    finally:
        session.close()


def test_a_base_time_must_be_one() -> None:
    with pytest.raises(PenstockError) as caught:
        read(table("bid", base_time="yesterday"))
    assert caught.value.code == "SQL-1505"
