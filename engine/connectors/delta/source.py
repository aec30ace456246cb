"""The source of Delta tables. A table is one split: its versions have an order, and one version is one
consistent state.

The id of the split has the version that reading begins with, so that a restored job begins where it did.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from penstock.catalog.connectors.delta import (
    CHANGE_FEED,
    SCAN_END,
    SCAN_MODE,
    SCAN_TIMESTAMP,
    SCAN_VERSION,
    instant,
)
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import redact_url
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.delta.delta_table import (
    TableStore,
    arrow_schema,
    check_readable,
    no_version_of,
    opened,
    opened_at,
    path_of,
)
from penstock.engine.connectors.delta.log import DeltaLog, LogVersion
from penstock.engine.connectors.delta.version_reader import StartVersion, VersionReader
from penstock.engine.connectors.lakehouse.columns import refuse_missing

_SPLIT = re.compile(r"(table|full|changes)-(\d+)")


class DeltaSource:
    """Splits ``table-12``: version 12. ``full-12``: version 12, then the changes of later ones.
    ``changes-12``: the changes of version 12 and of later ones.
    """

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._table = request.table
        self._known: list[str] = []

    def splits(self) -> list[str]:
        """Return the one split. DAT-5301 to 5306."""
        if not self._known:
            self._known = [self._first()]
        return self._known

    def _first(self) -> str:
        mode = option(self._table, SCAN_MODE)
        if mode == "from-version":
            return f"changes-{option(self._table, SCAN_VERSION)}"
        found = self._wanted()
        check_readable(self._table, found)
        wanted = [self._table.source_schema[index] for index in self._request.columns]
        required = [field for field in wanted if not field.nullable]
        # a nullable column may come with a later version of a stream
        where = f"the Delta table at {redact_url(path_of(self._table))}"
        refuse_missing(wanted if mode == "snapshot" else required, arrow_schema(found), where, written=False)
        if mode == "latest":
            return f"changes-{found.version() + 1}"
        return f"{'table' if mode == 'snapshot' else 'full'}-{found.version()}"

    def _wanted(self) -> Any:
        number, moment = option(self._table, SCAN_VERSION), option(self._table, SCAN_TIMESTAMP)
        if moment is None:
            return opened(self._table, None if number is None else int(number))
        found = opened_at(self._table, str(moment))
        log = DeltaLog(self._table, TableStore(self._table))
        at_ms = int(datetime.fromisoformat(instant(str(moment))).timestamp() * 1000)
        newest = opened(self._table)
        settings = newest.metadata().configuration
        # the library goes by the times of the log's files, which a copy of them changes
        if settings.get("delta.enableInCommitTimestamps") == "true":
            since = int(settings.get("delta.inCommitTimestampEnablementVersion", 0))
            if (number := _version_at(log, since, newest.version(), at_ms)) is not None:
                return opened(self._table, number)
        # of a time before the first version the library returns that version without a word
        version = log.version(found.version())
        if version is not None and version.time_ms > at_ms:
            raise no_version_of(self._table, str(moment), f"version {version.version} is younger")
        return found

    def recall(self, split_ids: list[str]) -> None:
        self._known = split_ids

    def open(self, split_id: str, position: Position | None) -> VersionReader:
        """Open the table at a version. DAT-5301 to 5306."""
        parts = _SPLIT.fullmatch(split_id)
        if parts is None:
            raise PenstockError(
                "DAT-5311",
                f"'{split_id[:40]}' is no version of a Delta table",
                hint="the job's state is of another table: begin without it",
                kind=Kind.EXTERNAL,
            )
        kind, version = parts[1], int(parts[2])
        end = option(self._table, SCAN_END)
        start = StartVersion(
            version,
            whole=kind != "changes",
            end=version if kind == "table" else None if end is None else int(end),
            changes=bool(option(self._table, CHANGE_FEED)),
        )
        store = TableStore(self._table)
        # the features of the table are those of now: a version does not lose them
        if kind == "changes":
            check_readable(self._table, opened(self._table))
        return VersionReader(self._request, store, DeltaLog(self._table, store), start, position)

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


def _version_at(log: DeltaLog, first: int, last: int, at_ms: int) -> int | None:
    """Return the newest of versions that was committed at a time, by the times that they record; ``None``
    where the first is younger.
    """
    # the version before ``low`` was there at that time, ``high`` and those after it were not
    low, high = first, last + 1
    while low < high:
        middle = (low + high) // 2
        version = _read_version(log, middle)
        # one that is cleaned from the log is older than those that are left
        if version is None or version.time_ms <= at_ms:
            low = middle + 1
        else:
            high = middle
    return None if low == first else low - 1


def _read_version(log: DeltaLog, number: int) -> LogVersion | None:
    try:
        return log.version(number)
    except PenstockError as error:
        if error.code != "DAT-5309":
            raise
        return None
