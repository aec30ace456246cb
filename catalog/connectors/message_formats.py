"""The formats of messages and their options: declared once, for every connector whose tables are messages
(Kafka, NATS, HTTP).

A connector adds ``message_format_options()`` to its options, calls ``check_message_formats`` in its
``check_options`` and ``check_message_column`` in its ``check_column``. The names are Flink's: ``format`` or
``value.format`` for values, ``key.format`` for keys. Options of a format have its name in front, such as
``csv.delimiter``; those of ``value.format`` and ``key.format`` have ``value.`` and ``key.`` before that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.catalog.connectors.option import Option, OptionKind, OptionValue
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    Array,
    Binary,
    Boolean,
    DataType,
    DayTimeInterval,
    Double,
    Float,
    Map,
    Row,
    String,
    Variant,
    YearMonthInterval,
    holds,
    is_integer,
)

_PARTS = ("value", "key")


@dataclass(frozen=True)
class MessageFormat:
    """The format of one part of a table's messages; ``options`` are typed, with defaults, without ``value.``
    and ``key.`` in front.
    """

    name: str
    options: dict[str, OptionValue]

    def option(self, key: str) -> OptionValue:
        """Return the value of an option such as ``csv.delimiter``; KeyError for another format's."""
        return self.options[key]

    def text(self, key: str) -> str | None:
        """Return an option as text; ``None`` where it is not set."""
        value = self.options[key]
        return None if value is None else str(value)


@dataclass(frozen=True)
class DeclaredFormat:
    """A format: its options (``required`` among them), and whether its messages are changes.

    ``refused`` returns a hint for a type that it cannot hold.
    """

    name: str
    options: tuple[Option, ...] = ()
    required: tuple[str, ...] = ()
    emits_changes: bool = False
    refused: Callable[[DataType], str | None] = lambda _kind: None


_AS_TEXT = "declare it STRING, and a VARIANT of it by a column v AS parse_json(s)"


def _no_json(kind: DataType) -> str | None:
    match kind:
        case YearMonthInterval():
            return "declare it STRING, or as a number of months"
        case Map(key, value):
            return _no_json(value) if isinstance(key, String) else "keys of a JSON object are STRING"
        case Array(element):
            return _no_json(element)
        case Row(fields):
            return next((hint for _, part in fields if (hint := _no_json(part)) is not None), None)
    return None


def _no_csv(kind: DataType) -> str | None:
    return "declare it STRING, or use 'format' = 'json'" if isinstance(kind, Array | Map | Row) else None


def _no_raw(kind: DataType) -> str | None:
    known = isinstance(kind, String | Variant | Binary | Boolean | Float | Double) or is_integer(kind)
    return None if known else "declare it BYTES or STRING, and CAST it in the query"


def _no_avro(kind: DataType) -> str | None:
    match kind:
        case Variant():
            return "Avro has no VARIANT: declare it STRING and read it by a column v AS parse_json(s)"
        case DayTimeInterval() | YearMonthInterval():
            return "Avro has no intervals: declare it BIGINT or STRING"
        case Map(key, value):
            return _no_avro(value) if isinstance(key, String) else "keys of a map of Avro are STRING"
        case Array(element):
            return _no_avro(element)
        case Row(fields):
            return next((hint for _, part in fields if (hint := _no_avro(part)) is not None), None)
    return None


def _no_protobuf(kind: DataType) -> str | None:
    no_such = _holds(kind, YearMonthInterval) or holds(kind, Variant)
    return f"protobuf has no such type: {_AS_TEXT}" if no_such else None


def _no_change(kind: DataType) -> str | None:
    # the envelope's reader has no second reader for maps and VARIANT, as lines of json have
    refused = _holds(kind, Map | DayTimeInterval | YearMonthInterval) or holds(kind, Variant)
    return _AS_TEXT if refused else None


def _no_flat_change(kind: DataType) -> str | None:
    nested = isinstance(kind, Array | Map | Row)
    return _AS_TEXT if nested else _no_change(kind)


def _holds(kind: DataType, which: object) -> bool:
    match kind:
        case Array(element) if not isinstance(kind, which):  # type: ignore[arg-type]
            return _holds(element, which)
        case Row(fields) if not isinstance(kind, which):  # type: ignore[arg-type]
            return any(_holds(part, which) for _, part in fields)
    return isinstance(kind, which)  # type: ignore[arg-type]


def _avro_registry_options(prefix: str) -> tuple[Option, ...]:
    """Return the options of Avro whose schemas are in a registry."""
    at_first = Option(
        f"{prefix}.schema",
        help="the schema rows are written in, or the reader's schema with defaults and aliases; "
        "by default that of the columns",
    )
    url, subject, *others = _registry_options(prefix)
    return (url, subject, at_first, *others)


def _message_options(prefix: str) -> tuple[Option, ...]:
    """Return the options that say what message protobuf holds."""
    return (
        Option(
            f"{prefix}.descriptor-file",
            help="a file that protoc wrote with --include_imports --descriptor_set_out",
        ),
        Option(f"{prefix}.message", help="the message, with its package, such as shop.Order"),
    )


def _registry_options(prefix: str) -> tuple[Option, ...]:
    """Return the options of a format whose schemas are in a Confluent Schema Registry."""
    return (
        Option(f"{prefix}.url", help="the URL of the schema registry, such as http://localhost:8081"),
        Option(
            f"{prefix}.subject",
            help="the subject that the schema is registered under; by default <topic>-value or <topic>-key",
        ),
        Option(f"{prefix}.auto-register", OptionKind.BOOL, True, "whether a writer may register its schema"),
        Option(f"{prefix}.basic-auth.user-info", help="user:password", secret=True),
        Option(f"{prefix}.bearer-auth.token", help="a token instead of a password", secret=True),
        Option(f"{prefix}.ssl.ca-location", help="the certificates that are trusted, a file in PEM"),
        Option(f"{prefix}.ssl.certificate-location", help="the client's certificate, a file in PEM"),
        Option(f"{prefix}.ssl.key-location", help="the key of the client's certificate, a file in PEM"),
        Option(f"{prefix}.timeout", OptionKind.DURATION, 10_000, "how long one answer may take", minimum=1),
        Option(
            f"{prefix}.retries", OptionKind.INT, 3, "how often a request is repeated that failed", minimum=0
        ),
    )


_FORMATS = (
    DeclaredFormat("json", refused=_no_json),
    DeclaredFormat(
        "csv",
        (
            Option(
                "csv.delimiter", OptionKind.CHARACTER, ",", "the delimiter between two values (\\t for a tab)"
            ),
            Option("csv.quote", OptionKind.CHARACTER, '"', "what encloses a value that holds a delimiter"),
            Option("csv.null-literal", OptionKind.STRING, "", "what NULL is written as, besides nothing"),
        ),
        refused=_no_csv,
    ),
    DeclaredFormat(
        "raw",
        (
            Option(
                "raw.endianness",
                OptionKind.ENUM,
                "big-endian",
                "the order of the bytes of a number",
                ("big-endian", "little-endian"),
            ),
        ),
        refused=_no_raw,
    ),
    DeclaredFormat(
        "avro",
        (
            Option(
                "avro.schema",
                OptionKind.STRING,
                None,
                "the schema that the values are written in; by default that of the columns",
            ),
        ),
        refused=_no_avro,
    ),
    DeclaredFormat(
        "avro-confluent",
        _avro_registry_options("avro-confluent"),
        required=("avro-confluent.url",),
        refused=_no_avro,
    ),
    DeclaredFormat(
        "debezium-avro-confluent",
        _avro_registry_options("debezium-avro-confluent"),
        required=("debezium-avro-confluent.url",),
        emits_changes=True,
        refused=_no_avro,
    ),
    DeclaredFormat(
        "protobuf",
        _message_options("protobuf"),
        required=("protobuf.descriptor-file", "protobuf.message"),
        refused=_no_protobuf,
    ),
    DeclaredFormat(
        "protobuf-confluent",
        (*_message_options("protobuf-confluent"), *_registry_options("protobuf-confluent")),
        required=(
            "protobuf-confluent.url",
            "protobuf-confluent.descriptor-file",
            "protobuf-confluent.message",
        ),
        refused=_no_protobuf,
    ),
    DeclaredFormat(
        "debezium-json",
        (
            Option(
                "debezium-json.schema-include",
                OptionKind.BOOL,
                False,
                "whether each change is in a payload beside its schema",
            ),
        ),
        emits_changes=True,
        refused=_no_change,
    ),
    DeclaredFormat("maxwell-json", emits_changes=True, refused=_no_flat_change),
    DeclaredFormat(
        "canal-json",
        tuple(
            Option(
                f"canal-json.{part}.include",
                OptionKind.STRING,
                None,
                f"a regular expression: changes of a {part} with another name are passed over",
            )
            for part in ("database", "table")
        ),
        emits_changes=True,
        refused=_no_flat_change,
    ),
    DeclaredFormat("ogg-json", emits_changes=True, refused=_no_flat_change),
)
FORMATS_OF_MESSAGES: dict[str, DeclaredFormat] = {declared.name: declared for declared in _FORMATS}
KEY_FORMATS = tuple(declared.name for declared in _FORMATS if not declared.emits_changes)


def message_format_options(keys: bool = False) -> tuple[Option, ...]:
    """Return the options of formats; with ``keys`` also those of a format of keys."""
    names = tuple(FORMATS_OF_MESSAGES)
    made = [
        Option("format", OptionKind.ENUM, None, "how the values of messages are written", names),
        Option("value.format", OptionKind.ENUM, None, "the same as format, beside key.format", names),
    ]
    if keys:
        made.append(
            Option("key.format", OptionKind.ENUM, None, "how the keys of messages are written", KEY_FORMATS)
        )
    for prefix in ("", "value.", *(["key."] if keys else [])):
        for declared in _FORMATS:
            if prefix != "key." or not declared.emits_changes:
                made += [_renamed(option, prefix + option.key) for option in declared.options]
    return tuple(made)


def _renamed(option: Option, key: str) -> Option:
    return Option(
        key,
        option.kind,
        option.default,
        option.help,
        option.choices,
        secret=option.secret,
        minimum=option.minimum,
    )


def value_format(options: Mapping[str, str]) -> MessageFormat:
    """Return the format of the values of a table with these options, which ``check_message_formats`` has
    accepted.
    """
    written = options.get("format", options.get("value.format"))
    assert written is not None, "check_message_formats requires a format"
    return _format(written, "value", options)


def key_format(options: Mapping[str, str]) -> MessageFormat | None:
    """Return the format of the keys; ``None`` where the table reads no keys."""
    written = options.get("key.format")
    return None if written is None else _format(written, "key", options)


def _format(written: str, part: str, options: Mapping[str, str]) -> MessageFormat:
    declared = FORMATS_OF_MESSAGES[written.strip().lower()]
    values: dict[str, OptionValue] = {}
    for option in declared.options:
        keys = [f"{part}.{option.key}", *([option.key] if part == "value" else [])]
        key = next((key for key in keys if key in options), None)
        values[option.key] = option.default if key is None else option.parse(key, options[key])
    return MessageFormat(declared.name, values)


def emits_message_changes(options: Mapping[str, str]) -> bool:
    """Return whether the values are changes: insertions, updates and deletions."""
    return FORMATS_OF_MESSAGES[value_format(options).name].emits_changes


def check_message_formats(options: dict[str, str], spans: dict[str, Span], values: dict[str, Span]) -> None:
    """Refuse a missing format (SQL-1504), two of them, and options of a format that is not the table's
    (SQL-1507).
    """
    if "format" in options and "value.format" in options:
        hint = "they are the same option: keep one of them"
        message = "both format and value.format are given"
        raise PenstockError("SQL-1507", message, hint=hint, span=spans.get("value.format"))
    if "format" not in options and "value.format" not in options:
        hint = f"add 'format' = 'json'; there is {', '.join(FORMATS_OF_MESSAGES)}"
        message = f"connector '{options['connector']}' needs option 'format'"
        raise PenstockError("SQL-1504", message, hint=hint, span=spans.get("connector"))
    written = {"value": options.get("format", options.get("value.format")), "key": options.get("key.format")}
    for key in options:
        part = key.partition(".")[0] if key.partition(".")[0] in _PARTS else "value"
        owner = _owner(key)
        kind = written[part]
        # 'csv.delimiter' beside 'format' = 'json' would be ignored in silence
        if owner is not None and (kind is None or kind.strip().lower() != owner):
            has = f"the format of {part}s is {kind}" if kind else f"there is no {part}.format"
            message = f"option '{key}' is of format {owner}, {has}"
            raise PenstockError("SQL-1507", message, hint="leave it out", span=spans.get(key))
    for key in (
        f"{prefix}canal-json.{part}.include" for prefix in ("", "value.") for part in ("database", "table")
    ):
        if key in options:
            _check_pattern(key, options[key], values)
    for part, kind in written.items():
        if kind is not None:
            _check_required(FORMATS_OF_MESSAGES[kind.strip().lower()], part, options, spans)


def _check_pattern(key: str, pattern: str, values: Mapping[str, Span]) -> None:
    # loaded for these options only
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        # RE2's syntax, in which there are no backreferences
        pc.match_substring_regex(pa.array([""]), f"^(?:{pattern})$")
    except pa.ArrowInvalid as error:
        raise PenstockError(
            "SQL-1505",
            f"option '{key}' is no regular expression",
            detail=str(error)[:200],
            hint="write it as 'shop|stock_.*'",
            span=values.get(key),
        ) from None


def _owner(key: str) -> str | None:
    """Return the format that an option belongs to; ``None`` for an option of the connector."""
    bare = key.removeprefix("value.").removeprefix("key.")
    return next(
        (name for name, one in FORMATS_OF_MESSAGES.items() if any(o.key == bare for o in one.options)), None
    )


def _check_required(
    declared: DeclaredFormat, part: str, options: dict[str, str], spans: dict[str, Span]
) -> None:
    for key in declared.required:
        if f"{part}.{key}" not in options and (part == "key" or key not in options):
            option = next(option for option in declared.options if option.key == key)
            name = f"key.{key}" if part == "key" else key
            message = f"format '{declared.name}' needs option '{name}'"
            raise PenstockError(
                "SQL-1504", message, hint=f"add '{name}' = '..': {option.help}", span=spans.get("format")
            )


def check_message_column(options: Mapping[str, str], field: Field, span: Span | None) -> None:
    """Refuse a column of a type that the format of values cannot hold. SQL-1509."""
    declared = FORMATS_OF_MESSAGES[value_format(options).name]
    hint = declared.refused(field.type)
    if hint is not None:
        message = f"column {field.name} of type {field.type} cannot be in messages of format {declared.name}"
        raise PenstockError("SQL-1509", message, hint=hint, span=span)
