"""Connectors as declarations: the name of each, its options, what the planner may rely on, and how a lookup
join reads it.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog.connectors.common_options import SCAN_PARALLELISM, SCAN_RATE, SINK_PARALLELISM
from penstock.catalog.connectors.connector import Boundedness, Connector, TableOptions
from penstock.catalog.connectors.database import DATABASE_CONNECTORS, DATABASES, LOOKUP_OPTIONS
from penstock.catalog.connectors.delta import DELTA
from penstock.catalog.connectors.filesystem import (
    FILESYSTEM,
    RELOAD,
    STANDARD_INPUT,
    STANDARD_OUTPUT,
    format_of,
)
from penstock.catalog.connectors.generated import DATAGEN, NEXMARK
from penstock.catalog.connectors.http import HTTP
from penstock.catalog.connectors.iceberg import ICEBERG
from penstock.catalog.connectors.kafka import KAFKA, KAFKA_UPSERTS
from penstock.catalog.connectors.mqtt import MQTT
from penstock.catalog.connectors.nats import NATS
from penstock.catalog.connectors.option import Option, OptionKind, OptionValue
from penstock.catalog.connectors.postgres_cdc import POSTGRES_CDC
from penstock.catalog.connectors.python import PYTHON
from penstock.catalog.connectors.redis import REDIS_STREAM
from penstock.catalog.connectors.socket import SOCKET
from penstock.catalog.connectors.spark import SPARK, SPARK_OPTIONS
from penstock.catalog.connectors.third_party import installed_connectors, installed_plugin
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.other_dialects import CONNECTOR_HINTS, OPTION_HINTS
from penstock.catalog.schema import Field, Schema
from penstock.catalog.secrets import MASK, names_secret, redact_url
from penstock.catalog.state_reference import STATE
from penstock.catalog.system_tables import SYSTEM
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING, DataType, Variant, holds

# The connector of a plan's part that the optimizer computes once for several readers.
SHARED = "shared"


def _registered_boundedness(table: TableOptions) -> Boundedness:
    # Rows that never end are no replay, whatever source.replay says.
    if table.option("source.unbounded"):
        return Boundedness.UNBOUNDED
    return Boundedness.REPLAY if table.option("source.replay") else Boundedness.BOUNDED


def _view_boundedness(table: TableOptions) -> Boundedness:
    # Read as a table: the rows of one state. Followed: that state, then the changes of the job.
    if not table.option("follow"):
        return Boundedness.BOUNDED
    return Boundedness.REPLAY if table.option("finite") else Boundedness.UNBOUNDED


def _system_boundedness(table: TableOptions) -> Boundedness:
    return Boundedness.UNBOUNDED if table.option("follow") else Boundedness.BOUNDED


def _view_emits_changes(table: TableOptions) -> bool:
    return bool(table.option("follow")) and not table.option("insert-only")


# Internal ones are made by the planner and the client.
_ALL = (
    FILESYSTEM,
    DATAGEN,
    NEXMARK,
    *DATABASE_CONNECTORS,
    POSTGRES_CDC,
    Connector(
        SPARK,
        "a table of Spark's own catalogs",
        SPARK_OPTIONS,
        source=True,
        sink=True,
        read_by_tasks=False,
        pushes_filters=True,
    ),
    DELTA,
    ICEBERG,
    SOCKET,
    KAFKA,
    KAFKA_UPSERTS,
    PYTHON,
    HTTP,
    REDIS_STREAM,
    NATS,
    MQTT,
    Connector(
        "print",
        "prints each change",
        (Option("print-identifier", OptionKind.STRING, "", "a word before each row"),),
        holds_variant=True,
        sink=True,
        accepts_changelog=True,
    ),
    # For measurements: rows are computed, and written nowhere.
    Connector(
        "blackhole",
        "takes rows and forgets them",
        holds_variant=True,
        sink=True,
        accepts_changelog=True,
        ignores_old_rows=True,
    ),
    Connector("collect", "returns rows to the client", sink=True, accepts_changelog=True, internal=True),
    # The rows are in this process: after a restart the program registers them again.
    Connector(
        "registered",
        "Arrow tables, pandas frames and Python iterables registered by name",
        (
            Option("name", required=True, help="the name it was registered under"),
            Option(
                "source.replay",
                OptionKind.BOOL,
                False,
                "read it as a stream that ends, instead of a bounded table",
            ),
            Option("source.unbounded", OptionKind.BOOL, False, "the iterable never ends"),
        ),
        source=True,
        pushes_filters=True,
        replayable=True,
        boundedness=_registered_boundedness,
    ),
    Connector(
        "materialized",
        "the rows of a materialized view",
        (
            Option("name", required=True, help="the view"),
            Option("snapshot", OptionKind.INT, None, "which of the states it was in", minimum=0),
            Option("follow", OptionKind.BOOL, False, "its state, then its changes"),
            Option("finite", OptionKind.BOOL, False, "its query ends"),
            Option("insert-only", OptionKind.BOOL, False, "its query never takes a row back"),
        ),
        source=True,
        sink=True,
        replayable=True,
        accepts_changelog=True,
        internal=True,
        boundedness=_view_boundedness,
        emits_changes=_view_emits_changes,
    ),
    Connector(
        SHARED,
        "a bounded part of a plan that several others read",
        source=True,
        pushes_filters=True,
        internal=True,
    ),
    Connector(
        "errors",
        "records of another table that could not be read",
        (Option("table", required=True),),
        source=True,
        internal=True,
    ),
    Connector(
        SYSTEM,
        "what runs in this process",
        (
            Option("name", help="the table", required=True),
            Option("follow", OptionKind.BOOL, False, "its rows, then their changes"),
            Option("interval", OptionKind.DURATION, 1000, "how often a table that is followed is read again"),
        ),
        source=True,
        internal=True,
        boundedness=_system_boundedness,
        emits_changes=lambda table: bool(table.option("follow")),
    ),
    Connector(
        STATE,
        "state of a job or savepoint",
        (
            Option("job", help="the job whose state it is"),
            Option("savepoint", help="the directory of a savepoint"),
            Option("checkpoint", help="the number of a checkpoint"),
            Option("operator", help="the operator whose state it is"),
            Option("state", help="the name of the state"),
        ),
        source=True,
        internal=True,
    ),
    Connector(
        "late",
        "rows of a job that came too late",
        (Option("job", help="the job whose rows they are", required=True),),
        source=True,
        internal=True,
    ),
)
CONNECTORS: dict[str, Connector] = {connector.name: connector for connector in _ALL}

# SELECT .. FROM t$errors reads the bad records of t.
ERRORS_SUFFIX = "$errors"
# raw: the record as it was read; source, split, position: where; column, error: what failed.
ERRORS_SCHEMA = Schema(
    (
        Field("raw", STRING),
        Field("source", STRING, False),
        Field("split", STRING, False),
        Field("position", BIGINT, False),
        Field("column", STRING),
        Field("error", STRING, False),
    )
)


def find_connector(name: str) -> Connector | None:
    """Return a connector by name, penstock's own or one of an installed package; ``None`` when there is none.
    DAT-5610, DAT-5611 for a package whose connector is broken.
    """
    # an installed package cannot take the place of a connector of penstock
    own = CONNECTORS.get(name.lower())
    if own is not None:
        return own
    plugin = installed_plugin(name.lower())
    return None if plugin is None else plugin.declaration


def connector_named(name: str, span: Span | None = None) -> Connector:
    """Return a connector by name; SQL-1502 with the nearest name when there is none."""
    # Internal connectors are in the list, too: check_options refuses them in CREATE TABLE.
    connector = find_connector(name)
    if connector is None:
        known = [*(c.name for c in _ALL if not c.internal), *installed_connectors()]
        raise PenstockError(
            "SQL-1502",
            f"there is no connector '{name}'",
            hint=CONNECTOR_HINTS.get(name.lower()) or did_you_mean(name, known, others=True),
            span=span,
        )
    return connector


def connector_of(table: CatalogTable) -> Connector:
    """Return the connector of a table."""
    return connector_named(table.connector)


def options_of(table: CatalogTable) -> TableOptions:
    """Return a table's options as its connector declares them."""
    return TableOptions(connector_of(table), table.options)


def option(table: CatalogTable, key: str) -> OptionValue:
    """Return the typed value of one of a table's options, its default when absent; KeyError for a key the
    connector does not declare.
    """
    return options_of(table).option(key)


def check_column(options: dict[str, str], field: Field, span: Span | None) -> None:
    """Refuse a column that the connector of a WITH clause cannot have: SQL-1509, SQL-1510."""
    connector = connector_named(options["connector"], span)
    if holds(field.type, Variant) and not connector.holds_variant:
        raise PenstockError(
            "SQL-1509",
            f"column {field.name} of a table of connector {connector.name} cannot be {field.type}",
            hint="declare it STRING and read it by a column v AS parse_json(s); write to_json(v) into it",
            span=span,
        )
    connector.check_column(options, field, span)


def check_table(table: CatalogTable, spans: dict[str, Span]) -> None:
    """Refuse a table whose columns and keys do not go with its options: SQL-15xx. ``spans``: the position of
    each option's key.
    """
    connector_of(table).check_table(table, spans)


def boundedness(table: CatalogTable) -> Boundedness:
    """Return whether a table's rows end."""
    return connector_of(table).boundedness(options_of(table))


def scan_parallelism(table: CatalogTable) -> int | None:
    """Return how many subtasks a table wants to be read by, ``None`` for as many as the job has."""
    return _declared_number(table, SCAN_PARALLELISM)


def sink_parallelism(table: CatalogTable) -> int | None:
    """Return how many subtasks a table wants to be written by, ``None`` for as many as its query has."""
    return _declared_number(table, SINK_PARALLELISM)


def scan_rate(table: CatalogTable) -> int:
    """Return the rows a second that all subtasks together may read of a table; 0 for any number."""
    return _declared_number(table, SCAN_RATE) or 0


def _declared_number(table: CatalogTable, key: str) -> int | None:
    # most tables have none of these, and tests make tables without a connector
    value = option(table, key) if key in table.options else None
    return value if isinstance(value, int) else None


def is_in_database(table: CatalogTable) -> bool:
    """Return whether a table is one of a database, which the engine queries by SQL."""
    return table.connector in DATABASES


def upserts_rows(table: CatalogTable) -> bool:
    """Return whether a table's rows are replaced and deleted in place, where it has a PRIMARY KEY."""
    return is_in_database(table) or connector_of(table).upserts


def replaces_by_key(table: CatalogTable) -> bool:
    """Return whether rows of a table are replaced and deleted by its PRIMARY KEY, which it has."""
    return upserts_rows(table) and bool(table.primary_key)


def ignores_old_rows(table: CatalogTable) -> bool:
    """Return whether a table makes nothing of the row before an update."""
    return connector_of(table).ignores_old_rows


def takes_filter(table: CatalogTable) -> bool:
    """Return whether a bounded scan of a table gives its filter to the connector, which leaves out rows or
    files.
    """
    return is_in_database(table) or connector_of(table).prunes


def metadata_keys(connector: str) -> dict[str, DataType]:
    """Return the metadata a connector can fill columns with, by key."""
    declared = find_connector(connector)
    return dict(declared.metadata) if declared is not None else {}


def check_options(
    options: dict[str, str], spans: dict[str, Span], value_spans: dict[str, Span] | None = None
) -> None:
    """Refuse a WITH clause that cannot work. ``options``: lower-case keys; ``spans``: the position of each
    key; ``value_spans``: where each value does.

    SQL-1501 no connector, 1502 unknown connector, 1503 unknown option, 1504 missing option, 1505 bad value,
    1506 bad unit, 1507 options that exclude each other.
    """
    # The checks go from the whole to the parts: connector, each option, missing options, then combinations.
    if "connector" not in options:
        raise PenstockError(
            "SQL-1501",
            "the WITH clause names no connector",
            hint=f"write 'connector' = 'filesystem'; there is {_public_names()}",
        )
    # Without the position of a value, the caret is below its key.
    values = spans | (value_spans or {})
    connector = connector_named(options["connector"], values.get("connector"))
    if connector.internal:
        raise PenstockError(
            "SQL-1502",
            f"connector '{connector.name}' is the engine's own",
            hint=f"there is {_public_names()}",
            span=values.get("connector"),
        )
    for key, text in options.items():
        if key != "connector":
            _declared(connector, key, spans.get(key), options).parse(key, text, values.get(key))
    for declared in connector.options:
        if declared.required and declared.key not in options:
            hint = f"add '{declared.key}' = '..': {declared.help}"
            raise PenstockError(
                "SQL-1504",
                f"connector '{connector.name}' needs option '{declared.key}'",
                hint=hint,
                span=spans.get("connector"),
            )
    if options.get("path") in STANDARD_OUTPUT and options.get(SINK_PARALLELISM, "1").strip() != "1":
        message = f"'{SINK_PARALLELISM}' excludes path '{options['path']}': two writers would mix rows"
        hint = f"leave out '{SINK_PARALLELISM}': one subtask writes to stdout"
        raise PenstockError("SQL-1507", message, hint=hint, span=spans.get(SINK_PARALLELISM))
    connector.check_options(options, spans, values)


def _public_names() -> str:
    own = (connector.name for connector in _ALL if not connector.internal)
    return ", ".join(sorted({*own, *installed_connectors()}))


def _declared(connector: Connector, key: str, span: Span | None, options: Iterable[str]) -> Option:
    declared = connector.option(key)
    if declared is None:
        # options of Flink come in groups: the hint is for all of them
        others = [other for other in options if other != "connector" and connector.option(other) is None]
        grouped: str | None = None
        if all(other in OPTION_HINTS for other in others):
            hints = {OPTION_HINTS[other]: None for other in others}
            grouped = "; ".join(
                f"{', '.join(k for k in others if OPTION_HINTS[k] == text)}: {text}" for text in hints
            )
        # The hint has the user's own column: fields.price.mn suggests fields.price.min.
        column = key.split(".")[1] if key.startswith("fields.") and key.count(".") > 1 else "<column>"
        known = [o.key.replace("*", column) for o in connector.all_options]
        hint = grouped or connector.other_name(key) or did_you_mean(key, known, others=True)
        hint = hint or f"connector '{connector.name}' takes no options"
        raise PenstockError(
            "SQL-1503", f"connector '{connector.name}' has no option '{key}'", hint=hint, span=span
        )
    return declared


def file_format(table: CatalogTable) -> str:
    """Return the format of a filesystem table: its option, or its path's suffix, or csv."""
    return format_of(options_of(table))


def reads_stdin(table: CatalogTable) -> bool:
    """Return whether a table's rows are the lines of stdin."""
    return table.connector == "filesystem" and table.options.get("path") in STANDARD_INPUT


def writes_to_stdout(table: CatalogTable) -> bool:
    """Return whether rows written to a table go to stdout."""
    return table.connector == "filesystem" and table.options.get("path") in STANDARD_OUTPUT


def left_behind(table: CatalogTable) -> str:
    """Return what a dropped table leaves behind elsewhere and how to remove it; nothing for most tables."""
    return connector_of(table).left_behind(options_of(table)) if table.connector in CONNECTORS else ""


def emits_changes(table: CatalogTable) -> bool:
    """Return whether later rows of a table may replace and retract earlier ones."""
    return connector_of(table).emits_changes(options_of(table))


def emits_upserts(table: CatalogTable) -> bool:
    """Return whether rows of a table replace and delete those of their keys, and do not say which."""
    return connector_of(table).emits_upserts(options_of(table))


def leaves_out(table: CatalogTable, kind: DataType) -> bool:
    """Return whether an upsert of a table may leave out a value of this type."""
    return connector_of(table).leaves_out(kind)


def takes_changes(table: CatalogTable) -> bool:
    """Return whether rows written to a table may be updated and retracted later."""
    # A sink that writes changes, a table whose format has them, or files with a column op.
    return connector_of(table).accepts_changelog or emits_changes(table) or written_changes(table) != "append"


# connectors whose tables say which changes are written
_DECLARES_CHANGES = frozenset({FILESYSTEM.name, PYTHON.name})


def written_changes(table: CatalogTable) -> str:
    """Return which changes files contain, with an ``op`` beside each row: ``append`` nothing, ``upsert`` all
    but old rows, ``retract`` everything.

    A table of a database or a lakehouse with a PRIMARY KEY has its rows replaced and deleted: ``upsert``.
    """
    if upserts_rows(table):
        return "upsert" if table.primary_key else "append"
    return str(option(table, "changelog.mode")) if table.connector in _DECLARES_CHANGES else "append"


_SERVED = frozenset({"kafka", "upsert-kafka", "nats", "redis-stream", "mqtt", "postgres-cdc", "postgres"})
"""Connectors whose tables are on servers."""
_CLIENT_OPTIONS = frozenset(
    {
        "username",
        "credentials-file",
        "nkey-seed-file",
        "tls.ca-file",
        "tls.certificate-file",
        "tls.key-file",
        "timeout",
        "keep-alive",
        "heartbeat.interval",
        "connect.max-retries",
        "sink.max-retries",
        "scan.topic-partition-discovery.interval",
    }
)


def is_client_option(connector: str, key: str) -> bool:
    """Return whether an option says how a client reaches a server or where a new job begins, never which rows
    a job that resumes reads or has written. Kafka's brokers are entry points: any of a cluster will do.
    """
    if connector not in _SERVED:
        return False
    if key.startswith("properties."):
        return key != "properties.isolation.level"
    return key in _CLIENT_OPTIONS or key.startswith("scan.startup.")


def is_secret(connector: str, key: str) -> bool:
    """Return whether an option's value must never be shown."""
    try:
        found = find_connector(connector)
    except PenstockError:  # a broken package: only the name of the option is left to judge by
        found = None
    declared = None if found is None else found.option(key)
    # By declaration or by name: an option of a connector that does not exist may be a password, too.
    return (declared is not None and declared.secret) or names_secret(key)


def redacted(options: dict[str, str]) -> dict[str, str]:
    """Return options as they may be shown: secrets replaced by ``******``."""
    name = options.get("connector", "")
    # A harmless option such as url may have a password inside.
    return {key: MASK if is_secret(name, key) else redact_url(text) for key, text in options.items()}


def errors_table(table: CatalogTable) -> CatalogTable:
    """Return the table `<name>$errors` over the bad records of a table; SQL-1508 when the table does not
    keep them.
    """
    if connector_of(table).option("on-error") is None or option(table, "on-error") != "table":
        hint = "create it with 'on-error' = 'table'"
        raise PenstockError("SQL-1508", f"table {table.name} keeps no bad records", hint=hint)
    return CatalogTable(
        table.name + ERRORS_SUFFIX,
        ERRORS_SCHEMA,
        ERRORS_SCHEMA,
        {"connector": "errors", "table": table.name},
        temporary=True,
    )


# For a reloaded table of files or of Spark: their connectors declare no lookup options.
_DEFAULTS = {declared.key: declared.default for declared in LOOKUP_OPTIONS}


def reload_ms(table: CatalogTable) -> int | None:
    """Return how often a table is read again while a job joins with it, milliseconds; ``None``: it is read
    once.
    """
    declared = connector_of(table).option(RELOAD)
    # Read from the options, not by table.option: a table without the option is never reloaded.
    if declared is None or RELOAD not in table.options:
        return None
    value = declared.parse(RELOAD, table.options[RELOAD])
    return int(value) if value is not None else None


def is_looked_up(table: CatalogTable) -> bool:
    """Return whether a join as of a processing time asks for the table's rows while it runs; any other
    bounded table is loaded first.
    """
    return is_in_database(table) or reload_ms(table) is not None


def lookup_option(table: CatalogTable, key: str) -> OptionValue:
    """Return the value of a lookup option: the table's, else the default. A table with a reload interval has
    a full cache.
    """
    every_ms = reload_ms(table)
    # scan.reload.interval is a full cache by another name.
    if every_ms is not None:
        whole: dict[str, OptionValue] = {
            "lookup.cache": "full",
            "lookup.full-cache.reload-interval": every_ms,
        }
        if key in whole:
            return whole[key]
    declared = connector_of(table).option(key)
    if declared is None or key not in table.options:
        return _DEFAULTS[key]
    return declared.parse(key, table.options[key])
