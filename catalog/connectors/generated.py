"""The options of the connectors that generate rows: datagen and nexmark, and the columns of nexmark's
tables.
"""

from __future__ import annotations

from penstock.catalog.connectors.connector import Boundedness, Connector, TableOptions
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, INT, STRING, TIMESTAMP, DataType, Row, to_arrow

FIELD_KINDS = ("random", "sequence", "now")

# The same seed generates the same rows: a restored job reads them again.
DATAGEN_OPTIONS = (
    Option(
        "rows-per-second",
        OptionKind.INT,
        10_000,
        "how fast rows come in all, bursts of a second apart (0: as fast as it goes)",
        minimum=0,
    ),
    Option(
        "number-of-rows",
        OptionKind.INT,
        None,
        "how many rows there are in all; without it rows never end",
        minimum=0,
    ),
    Option("seed", OptionKind.INT, 0, "another seed, other random values"),
    Option(
        "splits",
        OptionKind.INT,
        1,
        "how many parts rows are dealt into, so that as many subtasks can generate",
        minimum=1,
    ),
    # fields.<column>.*: options of one column. Which kind each belongs to is checked by the engine.
    Option(
        "fields.*.kind",
        OptionKind.ENUM,
        None,
        "random values, a sequence, or the time of generation",
        FIELD_KINDS,
    ),
    Option("fields.*.min", OptionKind.STRING, None, "least random value"),
    Option("fields.*.max", OptionKind.STRING, None, "greatest random value"),
    Option("fields.*.start", OptionKind.STRING, None, "first value of a sequence"),
    Option("fields.*.end", OptionKind.STRING, None, "last value of a sequence; rows end with it"),
    Option(
        "fields.*.step",
        OptionKind.DURATION,
        None,
        "how far apart the times of two successive rows are",
        minimum=0,
    ),
    Option("fields.*.length", OptionKind.INT, 16, "length of a random string", minimum=0),
    Option("fields.*.values", OptionKind.STRING, None, "comma-separated values to choose from"),
)


NEXMARK_OPTIONS = (
    Option(
        "table",
        OptionKind.ENUM,
        "events",
        "one kind of event by itself, or all of them",
        ("events", "person", "auction", "bid"),
    ),
    Option(
        "events.num",
        OptionKind.INT,
        None,
        "how many events there are, of all kinds together; without it they never end",
        minimum=0,
    ),
    Option("rows-per-second", OptionKind.INT, 0, "how fast rows come (0: as fast as it goes)", minimum=0),
    Option(
        "event-rate", OptionKind.INT, 10_000, "how many events there are in a second of event time", minimum=1
    ),
    Option("base-time", OptionKind.STRING, "2020-01-01 00:00:00", "the time of the first event"),
    Option("seed", OptionKind.INT, 0, "another seed, other random values"),
    Option(
        "splits",
        OptionKind.INT,
        1,
        "how many parts events are dealt into, so that as many subtasks can generate",
        minimum=1,
    ),
    Option(
        "out-of-order",
        OptionKind.DURATION,
        0,
        "how far events of a split may be out of order, in event time",
        minimum=0,
    ),
    # 1 : 3 : 46 of 50 events, the proportions of the Nexmark benchmark.
    Option("person.proportion", OptionKind.INT, 1, "people among person + auction + bid events", minimum=1),
    Option("auction.proportion", OptionKind.INT, 3, "auctions among them", minimum=1),
    Option("bid.proportion", OptionKind.INT, 46, "bids among them", minimum=0),
    # Skew as in the benchmark: most bids are of few people and for few auctions.
    Option(
        "person.hot-ratio",
        OptionKind.INT,
        4,
        "one auction of so many is not by the hot seller, one bid not by the hot bidder",
        minimum=1,
    ),
    Option(
        "auction.hot-ratio", OptionKind.INT, 2, "one bid of so many is not for the hot auction", minimum=1
    ),
    Option("person.active-num", OptionKind.INT, 1000, "how many people sell and bid at a time", minimum=1),
    Option("auction.in-flight-num", OptionKind.INT, 100, "how many auctions are open at a time", minimum=1),
)

# Columns as the benchmark's generator names them; names are compared without case.
PERSON: dict[str, DataType] = {
    "id": BIGINT,
    "name": STRING,
    "emailAddress": STRING,
    "creditCard": STRING,
    "city": STRING,
    "state": STRING,
    "dateTime": TIMESTAMP,
    "extra": STRING,
}
AUCTION: dict[str, DataType] = {
    "id": BIGINT,
    "itemName": STRING,
    "description": STRING,
    "initialBid": BIGINT,
    "reserve": BIGINT,
    "dateTime": TIMESTAMP,
    "expires": TIMESTAMP,
    "seller": BIGINT,
    "category": BIGINT,
    "extra": STRING,
}
BID: dict[str, DataType] = {
    "auction": BIGINT,
    "bidder": BIGINT,
    "price": BIGINT,
    "channel": STRING,
    "url": STRING,
    "dateTime": TIMESTAMP,
    "extra": STRING,
}
NEXMARK_TABLES: dict[str, dict[str, DataType]] = {
    "person": PERSON,
    "auction": AUCTION,
    "bid": BID,
    # One stream of all kinds: of person, auction and bid only the one that event_type names is not NULL.
    "events": {
        "event_type": INT,
        "person": Row(tuple(PERSON.items())),
        "auction": Row(tuple(AUCTION.items())),
        "bid": Row(tuple(BID.items())),
    },
}


def _check_nexmark_column(options: dict[str, str], field: Field, span: Span | None) -> None:
    """Refuse a column that the chosen table does not have, or not of this type; ROWs may leave fields out.
    SQL-1510, SQL-1509.
    """
    table = options.get("table", "events").strip().lower()
    _check(f"nexmark table '{table}'", NEXMARK_TABLES[table], field.name, field.type, span)


def _check(owner: str, known: dict[str, DataType], name: str, kind: DataType, span: Span | None) -> None:
    # A column is matched by name, not by position: a table may declare some of them in any order.
    folded = {column.lower(): declared for column, declared in known.items()}
    declared = folded.get(name.lower())
    if declared is None:
        raise PenstockError(
            "SQL-1510",
            f"{owner} has no column {name}",
            hint=did_you_mean(name, list(known), others=True),
            span=span,
        )
    # A row is checked field by field, so that it may leave some out.
    if isinstance(declared, Row) and isinstance(kind, Row):
        for part, inner in kind.fields:
            _check(f"column {name} of {owner}", dict(declared.fields), part, inner, span)
    # TIMESTAMP(3) and TIMESTAMP(6) have one layout.
    elif to_arrow(declared) != to_arrow(kind):
        raise PenstockError(
            "SQL-1509", f"column {name} of {owner} is not {kind}", hint=f"declare it as {declared}", span=span
        )


def _datagen_boundedness(table: TableOptions) -> Boundedness:
    # rows end with a number of rows, or with the last value of some sequence
    finite = "number-of-rows" in table.options or any(
        key.startswith("fields.") and key.endswith(".end") for key in table.options
    )
    return Boundedness.REPLAY if finite else Boundedness.UNBOUNDED


def _nexmark_boundedness(table: TableOptions) -> Boundedness:
    return Boundedness.UNBOUNDED if table.option("events.num") is None else Boundedness.REPLAY


DATAGEN = Connector(
    "datagen",
    "generated rows, the same ones for the same seed",
    DATAGEN_OPTIONS,
    source=True,
    pushes_filters=True,
    replayable=True,
    metadata=(("row", BIGINT),),
    boundedness=_datagen_boundedness,
)
NEXMARK = Connector(
    "nexmark",
    "generated events of an auction site: people, auctions, bids",
    NEXMARK_OPTIONS,
    source=True,
    pushes_filters=True,
    replayable=True,
    boundedness=_nexmark_boundedness,
    check_column=_check_nexmark_column,
)
