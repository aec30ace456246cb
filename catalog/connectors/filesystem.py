"""Options of the filesystem connector: where the files are, how they are written, how they are
watched, rolled and staged.
"""

from __future__ import annotations

import codecs

from penstock.catalog.connectors.connector import Boundedness, Connector, TableOptions
from penstock.catalog.connectors.option import Option, OptionKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.catalog.types import BIGINT, STRING, TimestampLtz, Variant, holds

# paths that are no files: lines are read from stdin, rows are written to stdout
STANDARD_INPUT = ("-", "/dev/stdin")
STANDARD_OUTPUT = ("-", "/dev/stdout")
# s3a is Hadoop's name of s3; gcs and abfs are those of other clients
OBJECT_SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
FORMATS = ("csv", "json", "parquet", "arrow", "debezium-json")
# Each record is a change: an insertion, an update or a deletion.
CHANGELOG_FORMATS = frozenset({"debezium-json"})
FILE_KINDS = {"debezium-json": "json"}  # formats that say what stands in files of another kind
# What a path's suffix says of its format; the option format overrides it.
FORMAT_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
# what R, pandas, Excel, databases and people write for a value that is missing
LIKELY_NULL_LITERALS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "\\N", "-", "?", ".")
COMPRESSION_SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
# What is written of changes: insertions; insertions and deletions by key; everything.
CHANGELOG_MODES = ("append", "upsert", "retract")
# Databases and Spark's tables declare this option, too.
RELOAD = "scan.reload.interval"
RELOAD_OPTION = Option(
    RELOAD,
    OptionKind.DURATION,
    None,
    "read the table again this often where it is joined FOR SYSTEM_TIME AS OF a processing time",
    minimum=1,
)
# fail stops the job, skip counts, table keeps the records in `<name>$errors`.
BAD_RECORD_POLICIES = ("fail", "skip", "table")

# what the hint of a misspelt encoding lists; every codec of Python is accepted
_ENCODINGS = ("utf-8", "utf-16", "latin-1", "windows-1252", "iso-8859-15", "gbk", "shift_jis", "euc-kr")

FILESYSTEM_OPTIONS = (
    Option(
        "path",
        required=True,
        help="a file, a directory, a glob or a URL; relative to the directory penstock was started in",
    ),
    Option(
        "format",
        OptionKind.ENUM,
        None,
        "how the files are written; by default what the path's suffix says",
        FORMATS,
    ),
    Option(
        "compression",
        OptionKind.ENUM,
        "auto",
        "of csv and json files; auto goes by the suffix .gz or .zst",
        ("auto", "none", "gzip", "zstd"),
    ),
    # Options of one format are refused with another: _check_filesystem.
    Option("csv.delimiter", OptionKind.CHARACTER, ",", "the delimiter between two values (\\t for a tab)"),
    Option("csv.header", OptionKind.BOOL, True, "whether the first line names the columns"),
    Option("csv.quote", OptionKind.CHARACTER, '"', "what encloses a value that holds a delimiter"),
    Option(
        "csv.null-literal", OptionKind.STRING, "", "what NULL is written as, besides nothing at all (e.g. NA)"
    ),
    Option(
        "csv.encoding",
        OptionKind.STRING,
        "utf-8",
        "what the characters are written in, such as windows-1252, latin-1 or utf-16",
    ),
    Option("csv.multiline", OptionKind.BOOL, False, "whether a quoted value may hold line ends"),
    Option("json.multiline", OptionKind.BOOL, False, "whether an object may span lines, or be in an array"),
    Option(
        "debezium-json.schema-include",
        OptionKind.BOOL,
        False,
        "whether each change is in a payload beside its schema",
    ),
    # The three ways in which files are read: a table (neither option), a stream that ends, one that does not.
    Option(
        "source.replay",
        OptionKind.BOOL,
        False,
        "read the files as a stream that ends, instead of a bounded table",
    ),
    Option(
        "source.monitor-interval",
        OptionKind.DURATION,
        None,
        "look for new files this often; the table then never ends",
        minimum=1,
    ),
    RELOAD_OPTION,
    Option(
        "source.missing-columns",
        OptionKind.ENUM,
        "fail",
        "what a column is that a file has not",
        ("fail", "null"),
    ),
    Option(
        "source.rows-per-second",
        OptionKind.INT,
        0,
        "as scan.rows-per-second, its older name: bursts of a second apart (0: as fast as it goes)",
        minimum=0,
    ),
    Option(
        "on-error",
        OptionKind.ENUM,
        "fail",
        "what happens to a record that cannot be read: table keeps it in `<name>$errors`",
        BAD_RECORD_POLICIES,
    ),
    Option(
        "changelog.mode",
        OptionKind.ENUM,
        "append",
        "what is written of changes: nothing but new rows; new rows and deletes by PRIMARY KEY; "
        "all; the latter two with a first column op",
        CHANGELOG_MODES,
    ),
    Option(
        "sink.rolling.rows",
        OptionKind.INT,
        0,
        "begin a new file after so many rows (0: only at checkpoints)",
        minimum=0,
    ),
    # 128 MiB, as Flink's sink.rolling-policy.file-size.
    Option(
        "sink.rolling.bytes",
        OptionKind.MEMORY,
        128 << 20,
        "begin a new file after about so many bytes",
        minimum=1,
    ),
    # The names are Flink's.
    Option(
        "auto-compaction",
        OptionKind.BOOL,
        False,
        "whether the files of a checkpoint are merged before they are visible",
    ),
    Option(
        "compaction.file-size",
        OptionKind.MEMORY,
        None,
        "merge the files of a checkpoint up to this size; by default sink.rolling.bytes",
        minimum=1,
    ),
    Option(
        "sink.parquet.compression",
        OptionKind.ENUM,
        "zstd",
        "codec of parquet pages",
        ("zstd", "snappy", "lz4", "gzip", "none"),
    ),
    # The names are Flink's; without them the environment says it, as for the state of jobs.
    Option("s3.endpoint", help="the address of a server compatible with S3, such as http://host:9000"),
    Option("s3.region", help="the region of the bucket; by default AWS_REGION"),
    Option(
        "s3.access-key",
        secret=True,
        help="the access key; by default AWS_ACCESS_KEY_ID, or the machine's role",
    ),
    Option("s3.secret-key", secret=True, help="the secret key of the access key"),
    Option("s3.session-token", secret=True, help="the token of temporary keys"),
    Option(
        "s3.path-style-access",
        OptionKind.BOOL,
        None,
        "whether the bucket is part of the path; by default it is at an endpoint of one's own",
    ),
)


def split_suffixes(path: str) -> tuple[str | None, str | None]:
    """Return the format and the compression that a file name's suffixes name; each is ``None`` when there
    is no such suffix.
    """
    # Only the last part of the path: a dot in a directory's name says nothing.
    name = path.rstrip("/").rsplit("/", 1)[-1].lower()
    compression = None
    # day.csv.gz: the compression is outermost and is removed first.
    for suffix, codec in COMPRESSION_SUFFIXES.items():
        if name.endswith(suffix):
            name, compression = name[: -len(suffix)], codec
            break
    for suffix, kind in FORMAT_SUFFIXES.items():
        if name.endswith(suffix):
            return kind, compression
    return None, compression


def _check_filesystem(options: dict[str, str], spans: dict[str, Span], values: dict[str, Span]) -> None:
    # A directory or glob has no suffix: it needs the option.
    kind, _ = split_suffixes(options["path"])
    kind = options.get("format", kind)
    if kind is None:
        message = f"the path '{redact_url(options['path'])}' does not say its format"
        raise PenstockError(
            "SQL-1504",
            message,
            hint="add 'format' = 'csv', 'json', 'parquet' or 'arrow'",
            span=values.get("path"),
        )
    # 'csv.header' beside 'format' = 'json' would be ignored in silence.
    for key in options:
        owner = next((name for name in ("csv", "json", "debezium-json") if key.startswith(f"{name}.")), None)
        if owner is not None and kind.strip().lower() != owner:
            raise PenstockError(
                "SQL-1507",
                f"option '{key}' is of format {owner}, the format is {kind}",
                hint="leave it out",
                span=spans.get(key),
            )
    # Debezium's records have the operation in themselves: there is one way to write them.
    if options.get("changelog.mode", "append") != "append" and kind.strip().lower() == "debezium-json":
        hint = "leave it out: debezium-json writes what a row was before and after"
        raise PenstockError(
            "SQL-1507", "changelog.mode is of the other formats", hint=hint, span=spans.get("changelog.mode")
        )
    _check_encoding(options, values)
    _check_compaction(options, spans, kind.strip().lower())
    _check_object_store(options, spans)
    quote, delimiter = options.get("csv.quote"), options.get("csv.delimiter", ",")
    # No parser could tell the end of a value from a quote.
    if quote is not None and quote == delimiter:
        hint = "a quoted value begins and ends with the one, values are apart by the other"
        raise PenstockError(
            "SQL-1507",
            "csv.quote and csv.delimiter are the same character",
            hint=hint,
            span=values.get("csv.quote"),
        )
    # One says that the rows end, the other that they never do.
    if "source.monitor-interval" in options and options.get("source.replay", "false").lower() == "true":
        hint = (
            "source.replay ends after the files there are, source.monitor-interval waits for more: keep one"
        )
        raise PenstockError(
            "SQL-1507",
            "a table cannot be both replayed and watched",
            hint=hint,
            span=spans.get("source.monitor-interval"),
        )


def _check_object_store(options: dict[str, str], spans: dict[str, Span]) -> None:
    scheme = object_scheme(options["path"])
    key = next((key for key in options if key.startswith("s3.")), None)
    if key is not None and scheme != "s3":
        raise PenstockError(
            "SQL-1507",
            f"option '{key}' is of s3:// URLs, the path is {redact_url(options['path'])[:100]}",
            hint="leave it out",
            span=spans.get(key),
        )
    if ("s3.access-key" in options) != ("s3.secret-key" in options):
        raise PenstockError(
            "SQL-1507",
            "s3.access-key and s3.secret-key are given together or not at all",
            hint="give both, or neither: then the environment says them",
            span=spans.get("s3.access-key") or spans.get("s3.secret-key"),
        )
    # Files are merged by reading them from the directory; objects would be downloaded for it.
    if scheme is not None and options.get("auto-compaction", "false").strip().lower() == "true":
        raise PenstockError(
            "SQL-1507",
            "auto-compaction merges files of directories only, not objects",
            hint="leave it out, and raise execution.checkpointing.interval for fewer files",
            span=spans.get("auto-compaction"),
        )


def object_scheme(path: str) -> str | None:
    """Return s3, gs or az for a URL of such a store; None for any other path."""
    scheme, separator, _ = path.partition("://")
    return OBJECT_SCHEMES.get(scheme.lower()) if separator else None


def _check_encoding(options: dict[str, str], values: dict[str, Span]) -> None:
    written = options.get("csv.encoding")
    if written is not None and codec_name(written) is None:
        raise PenstockError(
            "SQL-1505",
            f"option 'csv.encoding' cannot be '{written[:60]}'",
            hint=did_you_mean(written, _ENCODINGS, others=True),
            span=values.get("csv.encoding"),
        )


def codec_name(written: str) -> str | None:
    """Return the name of an encoding of characters as Python normalizes it; ``None`` when there is none."""
    try:
        # base64 and the like are codecs, too: they encode no characters
        "".encode(written)
        name = codecs.lookup(written).name
    except (LookupError, ValueError):
        return None
    # a byte order mark is skipped in any case
    return "utf-8" if name in ("utf-8-sig", "ascii") else name


def _check_compaction(options: dict[str, str], spans: dict[str, Span], kind: str) -> None:
    if options.get("auto-compaction", "false").strip().lower() != "true":
        # the size alone would be ignored in silence
        if "compaction.file-size" in options:
            raise PenstockError(
                "SQL-1507",
                "compaction.file-size has no effect without auto-compaction",
                hint="add 'auto-compaction' = 'true'",
                span=spans.get("compaction.file-size"),
            )
        return
    # A file of UTF-16 begins with a byte order mark, which would come in the middle of a merged one.
    if codec_name(options.get("csv.encoding", "utf-8")) != "utf-8":
        raise PenstockError(
            "SQL-1507",
            f"auto-compaction cannot merge files of csv.encoding {options['csv.encoding'][:60]}",
            hint="write UTF-8: leave csv.encoding out; or leave auto-compaction out",
            span=spans.get("auto-compaction"),
        )
    # A reader of changes goes by the names of the files: a merged one would come at another place.
    changes = options.get("changelog.mode", "append").strip().lower() != "append"
    if changes or kind in CHANGELOG_FORMATS:
        what = "of this changelog.mode" if changes else f"of format {kind}"
        raise PenstockError(
            "SQL-1507",
            f"auto-compaction cannot merge files {what}: they are changes, read in the order of their names",
            hint="leave auto-compaction out, and raise execution.checkpointing.interval for fewer files",
            span=spans.get("auto-compaction"),
        )


def format_of(table: TableOptions) -> str:
    """Return the format of a filesystem table: its option, or its path's suffix, or csv."""
    declared = table.option("format")
    return str(declared) if declared is not None else split_suffixes(table.options["path"])[0] or "csv"


def pipe_fault(table: TableOptions, *, partitioned: bool, reads: bool) -> tuple[str, str] | None:
    """Return what a table at stdin or stdout cannot have, and what to write instead; ``None`` for any other
    table, and for one that works.
    """
    path = table.options["path"]
    if path not in (STANDARD_INPUT if reads else STANDARD_OUTPUT):
        return None
    kind, name = format_of(table), "stdin" if reads else "stdout"
    if reads and kind not in ("csv", "json"):
        return f"{kind} cannot be read from stdin, only csv and json", "give the path of the file"
    if table.option("compression") not in ("auto", "none"):
        tool = "gunzip -c FILE | penstock .." if reads else "penstock .. | gzip"
        return f"{name} is not compressed by penstock", f"leave compression out and write: {tool}"
    if not reads and codec_name(str(table.option("csv.encoding"))) != "utf-8":
        return "stdout is written in UTF-8", "leave csv.encoding out and write: penstock .. | iconv -t .."
    if partitioned:
        return f"{name} has no partitions", "leave PARTITIONED BY out"
    if not reads and table.option("auto-compaction"):
        return "stdout has no files to merge", "leave auto-compaction out"
    if table.option("source.monitor-interval") is not None:
        return f"{name} is no directory", "leave source.monitor-interval out: lines are read as they come"
    return None


def _boundedness(table: TableOptions) -> Boundedness:
    # nobody knows yet whether its lines end
    if table.options["path"] in STANDARD_INPUT:
        return Boundedness.REPLAY
    # a watched directory never ends; a replay is a finite stream; else the files there are now are the table
    if table.option("source.monitor-interval") is not None:
        return Boundedness.UNBOUNDED
    return Boundedness.REPLAY if table.option("source.replay") else Boundedness.BOUNDED


def _check_column(options: dict[str, str], field: Field, span: Span | None) -> None:
    """Refuse VARIANT in changes of Debezium, whose own type of JSON is a text: SQL-1509."""
    kind = options.get("format", split_suffixes(options["path"])[0] or "")
    if kind.strip().lower() in CHANGELOG_FORMATS and holds(field.type, Variant):
        raise PenstockError(
            "SQL-1509",
            f"column {field.name} of format {kind} cannot be {field.type}",
            hint="declare it STRING and read it by a column v AS parse_json(s)",
            span=span,
        )


FILESYSTEM = Connector(
    "filesystem",
    "csv, json lines, parquet and arrow files in a directory, here or at a URL",
    FILESYSTEM_OPTIONS,
    holds_variant=True,
    source=True,
    sink=True,
    pushes_filters=True,
    replayable=True,
    exactly_once=True,
    # METADATA FROM 'file.path' and so on; file.row is the position of the row in its file.
    metadata=(
        ("file.path", STRING),
        ("file.name", STRING),
        ("file.row", BIGINT),
        ("file.size", BIGINT),
        ("file.modification-time", TimestampLtz(3)),
    ),
    boundedness=_boundedness,
    emits_changes=lambda table: format_of(table) in CHANGELOG_FORMATS,
    check_options=_check_filesystem,
    check_column=_check_column,
)
