"""Options of the connectors of databases: where the database is, how rows are looked up in it, how
they are written to it.
"""

from __future__ import annotations

import re

from penstock.catalog.connectors.connector import Connector
from penstock.catalog.connectors.filesystem import RELOAD, RELOAD_OPTION
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    Binary,
    Boolean,
    Date,
    Decimal,
    Double,
    Float,
    String,
    is_integer,
    is_timestamp,
)

# Connectors whose tables are asked by SQL.
DATABASES = ("postgres", "sqlite", "duckdb")

# Keys are those of Flink's lookup joins.
LOOKUP_OPTIONS = (
    Option(
        "lookup.cache",
        OptionKind.ENUM,
        "none",
        "what is remembered of rows looked up: nothing, some, or all",
        ("none", "partial", "full"),
    ),
    Option(
        "lookup.partial-cache.max-rows",
        OptionKind.INT,
        10_000,
        "how many rows a partial cache holds in each subtask",
        minimum=1,
    ),
    # None: no entry expires; it leaves when the cache is full.
    Option(
        "lookup.partial-cache.expire-after-write",
        OptionKind.DURATION,
        None,
        "how long an entry stays in the cache",
        minimum=1,
    ),
    Option(
        "lookup.partial-cache.expire-after-access",
        OptionKind.DURATION,
        None,
        "how long an entry that is not read stays in the cache",
        minimum=1,
    ),
    # On, as in Flink: a key without a row would otherwise be asked for at each of its rows.
    Option(
        "lookup.partial-cache.cache-missing-key",
        OptionKind.BOOL,
        True,
        "whether the cache stores that a key has no row",
    ),
    Option(
        "lookup.full-cache.reload-interval",
        OptionKind.DURATION,
        None,
        "how often a full cache is read again (without it once)",
        minimum=1,
    ),
    Option(
        "lookup.max-retries", OptionKind.INT, 3, "how often a request that failed is sent again", minimum=0
    ),
    Option("lookup.async", OptionKind.BOOL, True, "whether rows are processed while requests are pending"),
    # allow_unordered: one slow answer delays no other, but rows never pass a watermark.
    Option(
        "lookup.output-mode",
        OptionKind.ENUM,
        "ordered",
        "whether rows are emitted in input order, or as answers arrive",
        ("ordered", "allow_unordered"),
    ),
    Option(
        "lookup.capacity",
        OptionKind.INT,
        100,
        "how many batches of a subtask may wait for their answers",
        minimum=1,
    ),
    Option(
        "lookup.connections",
        OptionKind.INT,
        4,
        "how many requests of a subtask are pending at a time",
        minimum=1,
    ),
    # 3 min, as Flink's table.exec.async-lookup.timeout.
    Option(
        "lookup.timeout",
        OptionKind.DURATION,
        180_000,
        "how long an answer is waited for before the job fails",
        minimum=1,
    ),
    # From here on: a key without a row is asked for again, as with Flink's hint LOOKUP.
    Option(
        "lookup.retry-predicate",
        OptionKind.ENUM,
        None,
        "whether a key without a row is asked for again",
        ("lookup_miss",),
    ),
    Option(
        "lookup.retry-strategy", OptionKind.ENUM, "fixed_delay", "how it is asked for again", ("fixed_delay",)
    ),
    Option(
        "lookup.fixed-delay",
        OptionKind.DURATION,
        1_000,
        "how long after a miss it is asked for again",
        minimum=1,
    ),
    Option("lookup.max-attempts", OptionKind.INT, 3, "how often it is asked for again", minimum=1),
)
# Deadlocks, lost connections, locked files: the same transaction is tried again before the job restarts.
DATABASE_SINK_OPTIONS = (
    Option(
        "sink.max-retries",
        OptionKind.INT,
        3,
        "how often what the database refused in passing is tried again",
        minimum=0,
    ),
)
# Of databases with savepoints: a refused row ends no transaction.
ON_ERROR = Option(
    "on-error",
    OptionKind.ENUM,
    "fail",
    "what happens to a row that the database refuses to be written, by a constraint or a type; skipped rows "
    "are counted, those of 'table' are in <table>$errors too",
    ("fail", "skip", "table"),
)
_TABLE = Option(
    "table-name",
    required=True,
    help="the table's name in the database, after its schema's and a dot if need be",
)
FILE_DATABASE_OPTIONS = (
    Option(
        "path", required=True, help="the database's file, relative to the directory penstock was started in"
    ),
    _TABLE,
)
POSTGRES_OPTIONS = (
    Option("url", required=True, help="postgresql://host:port/database"),
    _TABLE,
    Option("username", help="who connects (else whom the url names)"),
    Option("password", help="the word to connect with", secret=True),
    ON_ERROR,
)
# The hint's words for the options of a lookup: LOOKUP('table' = 'd', 'async' = 'true').
LOOKUP_HINT_OPTIONS = {
    name: f"lookup.{name}"
    for name in (
        "async",
        "output-mode",
        "capacity",
        "timeout",
        "retry-predicate",
        "retry-strategy",
        "fixed-delay",
        "max-attempts",
    )
}


def _check_options(options: dict[str, str], spans: dict[str, Span], values: dict[str, Span]) -> None:
    """Refuse what a database's options cannot mean: SQL-1505 for a url of something else, SQL-1507 for
    options of another kind of cache.
    """
    # A url of another system, such as mysql://, would fail only at the first request.
    url = options.get("url")
    if url is not None and not re.match(r"postgres(ql)?://", url):
        scheme = url.partition("://")[0] if "://" in url else "this"
        hint = "write postgresql://host:port/database"
        raise PenstockError(
            "SQL-1505", f"option 'url' cannot begin with '{scheme[:20]}'", hint=hint, span=values.get("url")
        )
    # scan.reload.interval makes a full cache of its own.
    cache = options.get("lookup.cache", "none").strip().lower()
    if RELOAD in options and cache not in ("none", "full"):
        hint = "leave one of the two out"
        raise PenstockError(
            "SQL-1507",
            f"option '{RELOAD}' remembers the table whole, not a part of it",
            hint=hint,
            span=spans.get(RELOAD),
        )
    # lookup.partial-cache.max-rows beside lookup.cache = full would be ignored in silence.
    for key in options:
        kind = key.removeprefix("lookup.").partition("-cache.")[0] if "-cache." in key else None
        if kind is not None and kind != cache:
            hint = f"add 'lookup.cache' = '{kind.upper()}', or leave it out"
            raise PenstockError(
                "SQL-1507", f"option '{key}' is of a {kind} cache", hint=hint, span=spans.get(key)
            )


def check_column_type(_options: dict[str, str], field: Field, span: Span | None) -> None:
    """Refuse a column of a type that the databases do not have. SQL-1509."""
    kind = field.type
    if not (
        # Types that PostgreSQL, SQLite and DuckDB all store and compare.
        is_integer(kind)
        or is_timestamp(kind)
        or isinstance(kind, Boolean | Float | Double | Decimal | String | Binary | Date)
    ):
        message = f"column {field.name} of a table in a database cannot be {kind}"
        raise PenstockError(
            "SQL-1509",
            message,
            hint="declare it as STRING and read it with CAST or a function of JSON",
            span=span,
        )


def _declared(name: str, help_text: str, location: tuple[Option, ...]) -> Connector:
    return Connector(
        name,
        help_text,
        (*location, RELOAD_OPTION, *LOOKUP_OPTIONS, *DATABASE_SINK_OPTIONS),
        source=True,
        sink=True,
        read_by_tasks=False,
        pushes_filters=True,
        # One transaction adds the staged rows and records the epoch: a repeated commit changes nothing.
        exactly_once=True,
        check_options=_check_options,
        check_column=check_column_type,
    )


DATABASE_CONNECTORS = (
    _declared("postgres", "a table of a PostgreSQL database", POSTGRES_OPTIONS),
    _declared("sqlite", "a table of a SQLite file", (*FILE_DATABASE_OPTIONS, ON_ERROR)),
    _declared("duckdb", "a table of a DuckDB file", FILE_DATABASE_OPTIONS),
)
