"""A connector's declaration: its options, its promises to the planner, the checks of tables that use it.

A new connector is declared in one file of this folder. Beside its own files two others name it: the list of
``catalog/connectors/registry.py`` and the factories of ``engine/connectors/registry.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from penstock.catalog.connectors.common_options import SCAN_OPTIONS, SINK_OPTIONS
from penstock.catalog.connectors.option import Option, OptionValue
from penstock.catalog.errors import Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import DataType


class Boundedness(StrEnum):
    """Whether a table's rows end: BOUNDED is a table, REPLAY a finite recording read as a stream,
    UNBOUNDED a stream.
    """

    BOUNDED = "bounded"
    REPLAY = "replay"
    UNBOUNDED = "unbounded"


UNCHANGED = "unchanged"
"""The metadata key of the values that a row leaves out. It is no key for users."""

# Keys in lower case, values as written.
Options = dict[str, str]
# Positions of keys, or of values, by key: where the caret of an error is drawn.
Spans = dict[str, Span]


class TableOptions:
    """The options of one table, read with the types its connector declares."""

    def __init__(self, connector: Connector, options: Mapping[str, str]) -> None:
        self.connector = connector
        self.options = options

    def option(self, key: str) -> OptionValue:
        """Return the typed value of an option, its default when absent; KeyError for an undeclared key."""
        declared = self.connector.option(key)
        if declared is None:
            raise KeyError(key)
        text = self.options.get(key)
        # Parsed at each call; CREATE TABLE has checked the text, so it does not fail here.
        return declared.default if text is None else declared.parse(key, text)


# Answers of a connector that declares nothing else.
def _always_bounded(_table: TableOptions) -> Boundedness:
    return Boundedness.BOUNDED


def _insert_only(_table: TableOptions) -> bool:
    return False


def _whole_rows(_kind: DataType) -> bool:
    return False


def _nothing_stays(_table: TableOptions) -> str:
    return ""


def _any_options(_options: Options, _spans: Spans, _values: Spans) -> None:
    return None


def _any_sink(_table: CatalogTable, _span: Span | None) -> None:
    return None


def _any_table(_table: CatalogTable, _spans: Spans) -> None:
    return None


def _no_other_name(_key: str) -> str | None:
    return None


def _any_column(_options: Options, _field: Field, _span: Span | None) -> None:
    return None


@dataclass(frozen=True)
class Connector:
    """What a connector is and promises. ``internal`` ones are the engine's own: CREATE TABLE refuses them.

    ``metadata``: the types of what METADATA columns can read, by key. ``boundedness`` and ``emits_changes``
    answer for one table's options. ``check_options`` and ``check_column`` raise PenstockError for a
    declaration that cannot work; every single option is checked before. ``check_table`` does the same when
    columns and keys are known, with the spans of options. ``other_name`` returns what to write for a key that
    other products have under another name.
    """

    name: str
    help: str
    options: tuple[Option, ...] = ()
    source: bool = False
    sink: bool = False
    # Tasks of a job read it; only a bounded backend reads the others.
    read_by_tasks: bool = True
    # The planner may move a filter into the scan.
    pushes_filters: bool = False
    # A bounded backend hands the filter to the connector, which leaves out files by it.
    prunes: bool = False
    # A split can be read again from a position that a checkpoint has.
    replayable: bool = False
    # A sink that commits rows with the checkpoint they belong to, once.
    exactly_once: bool = False
    # A sink that can write retractions; others refuse a query that emits them.
    accepts_changelog: bool = False
    # A sink that replaces and deletes rows by the PRIMARY KEY of its table, where that has one.
    upserts: bool = False
    # A sink that makes nothing of the row before an update, whether its table has a key or not.
    ignores_old_rows: bool = False
    # Its tables must declare PRIMARY KEY.
    needs_primary_key: bool = False
    internal: bool = False
    # Its tables may have VARIANT; with a format of messages or files, check_column has the last word.
    holds_variant: bool = False
    metadata: tuple[tuple[str, DataType], ...] = ()
    boundedness: Callable[[TableOptions], Boundedness] = _always_bounded
    emits_changes: Callable[[TableOptions], bool] = _insert_only
    # Its rows are upserts and deletions by the primary key, which do not say what they replace.
    emits_upserts: Callable[[TableOptions], bool] = _insert_only
    # Whether such a row may leave out a value of a type, when it is that of the row before. Then UNCHANGED
    # has a bit for each column of the source schema.
    leaves_out: Callable[[DataType], bool] = _whole_rows
    # What a dropped table leaves behind elsewhere, as a sentence that says how to remove it.
    left_behind: Callable[[TableOptions], str] = _nothing_stays
    check_options: Callable[[Options, Spans, Spans], None] = _any_options
    check_column: Callable[[Options, Field, Span | None], None] = _any_column
    check_table: Callable[[CatalogTable, Spans], None] = _any_table
    other_name: Callable[[str], str | None] = _no_other_name
    # Refuses to write a table that can only be read; the span is its name in INSERT.
    check_sink: Callable[[CatalogTable, Span | None], None] = _any_sink

    def option(self, key: str) -> Option | None:
        """Return the declaration of a key, or ``None``."""
        return next((option for option in self.all_options if option.matches(key)), None)

    @property
    def all_options(self) -> tuple[Option, ...]:
        """The connector's own options, then those that every table takes."""
        scan = SCAN_OPTIONS if self.source and self.read_by_tasks else ()
        return (*self.options, *scan, *(SINK_OPTIONS if self.sink else ()))
