"""The requests of a batch and the caching of their results: no cache, a partial cache, or the whole table."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import lookup_option, reload_ms
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.clock import Clock
from penstock.engine.api.stream_elements import Batch
from penstock.engine.lookup.cache import LookupCache, TableVersions
from penstock.engine.lookup.client import Answer, LookupClient, LookupTable
from penstock.engine.lookup.results import Asked, asked, without_null
from penstock.engine.state.index.key_index import KeyIndex


class LookupAsking(Protocol):
    """Turns batches into cached rows and requests. Times are milliseconds of one clock."""

    hits: int
    misses: int
    loads: int
    failed_loads: int
    failure: PenstockError | None
    """Why the last load failed; ``None`` when it did not."""

    def ask(self, batch: Batch, now_ms: float) -> Asked:
        """Send the request of a batch, if it needs one, and return both."""

    def learn(self, rows: Asked, now_ms: float) -> None:
        """Cache the result of a request that rows waited for."""


def lookup_asking(
    client: LookupClient,
    what: LookupTable,
    keys: tuple[int, ...],
    clock: Clock,
    versions: TableVersions | None = None,
) -> LookupAsking:
    """Return the caching strategy of a table's options. ``keys``: the key columns of the probing rows;
    ``versions``: storage for its loads.
    """
    return (
        WholeTable(client, what, keys, clock, versions)
        if lookup_option(what.table, "lookup.cache") == "full"
        else AskingByKey(client, what, keys)
    )


def _duration(table: CatalogTable, key: str) -> float | None:
    value = lookup_option(table, key)
    return None if value is None else float(value)


class AskingByKey:
    """Requests the keys that are not cached."""

    def __init__(self, client: LookupClient, what: LookupTable, keys: tuple[int, ...]) -> None:
        self._client, self._what, self._keys = client, what, keys
        self.hits = self.misses = self.loads = self.failed_loads = 0
        self.failure: PenstockError | None = None
        self._cache: LookupCache | None = None
        table = what.table
        if lookup_option(table, "lookup.cache") == "partial":
            self._cache = LookupCache(
                what.key_types,
                what.schema,
                max_rows=int(lookup_option(table, "lookup.partial-cache.max-rows") or 0),
                write_ms=_duration(table, "lookup.partial-cache.expire-after-write"),
                access_ms=_duration(table, "lookup.partial-cache.expire-after-access"),
                missing=bool(lookup_option(table, "lookup.partial-cache.cache-missing-key")),
            )

    def ask(self, batch: Batch, now_ms: float) -> Asked:
        # All distinct keys are missing until the cache is asked.
        rows = asked(batch, self._keys, self._what.key_types, self._what.schema)
        count = rows.missing.size
        if self._cache is not None and count:
            known, rows.known_at, rows.known = self._cache.get(rows.keys, now_ms)
            rows.missing = np.flatnonzero(~known)
        # Distinct keys are counted, not rows.
        self.hits += count - rows.missing.size
        self.misses += rows.missing.size
        if rows.missing.size:
            # All are missing: no copy.
            keys = (
                rows.keys
                if rows.missing.size == count
                else [column.take(pa.array(rows.missing)) for column in rows.keys]
            )
            rows.answer = self._client.ask(keys)
        return rows

    def learn(self, rows: Asked, now_ms: float) -> None:
        # Without a cache there is nothing to learn; an answer with an error has no rows.
        answer = rows.answer
        if (
            self._cache is not None
            and answer is not None
            and answer.keys is not None
            and answer.rows is not None
        ):
            self._cache.put(answer.keys, answer.key_numbers, answer.rows, now_ms)


class WholeTable:
    """Loads the whole table before the first row is joined, and reloads it when due. Until a reload
    completes, rows join the last load.

    If a reload on an interval fails, the last load is used until the next attempt. For a table in a database
    the job fails instead.
    """

    def __init__(
        self,
        client: LookupClient,
        what: LookupTable,
        keys: tuple[int, ...],
        clock: Clock,
        versions: TableVersions | None,
    ) -> None:
        self._clock, self._versions = clock, versions
        # Whether a failed reload may be tolerated.
        self._stays = reload_ms(what.table) is not None
        # At most one load runs; ``_loaded`` is the last complete one.
        self._client, self._what, self._keys = client, what, keys
        self._reload_ms = _duration(what.table, "lookup.full-cache.reload-interval")
        self._loading: Answer | None = None
        self._loaded: LookupCache | None = None
        self._asked_ms = 0.0
        self.hits = self.misses = self.loads = self.failed_loads = 0
        self.failure: PenstockError | None = None

    def ask(self, batch: Batch, now_ms: float) -> Asked:
        rows = asked(batch, self._keys, self._what.key_types, self._what.schema)
        if self._versions is not None and self._versions.restored is not None:
            self._restore_version(self._versions, now_ms)
        # the first load, or the reload interval has passed since the last request
        due = self._loaded is None or (
            self._reload_ms is not None and now_ms - self._asked_ms >= self._reload_ms
        )
        if self._loading is None and due:
            self._loading, self._asked_ms = self._client.ask(None), now_ms
            self.misses += 1
        # A load that has finished is used for this batch already.
        if self._loading is not None and self._loading.done:
            self._adopt(now_ms)
        # nothing to join with yet: the rows wait for the first load
        if self._loaded is None:
            rows.answer = self._loading
        else:
            self._meet(rows, now_ms)
        return rows

    def learn(self, rows: Asked, now_ms: float) -> None:
        if rows.answer is None:
            return
        # The first of the waiting batches adopts the load, the others find it adopted.
        if rows.answer is self._loading:
            self._adopt(now_ms)
        rows.answer = None
        self._meet(rows, now_ms)

    def _adopt(self, now_ms: float) -> None:
        """Make a finished load the table's contents, or report its error."""
        assert self._loading is not None
        load, self._loading = self._loading, None
        self.failure = load.error
        if load.error is not None:
            # a failed reload is tolerated only while there is a last load to use
            if not self._stays or self._loaded is None:
                raise load.error
            self.failed_loads += 1
            return
        assert load.rows is not None
        # Before it is used: a checkpoint must name the version that rows were joined with.
        if self._versions is not None:
            self._versions.keep(load.rows)
        self.loads += 1
        self._take(load.rows, now_ms)

    def _restore_version(self, versions: TableVersions, now_ms: float) -> None:
        """Use the version that the checkpoint names; the next load is due as if there had been no restart."""
        assert versions.restored is not None
        self._take(versions.restored, now_ms)
        versions.restored = None
        # On the caller's clock: so long ago as the wall clock says, across the restart.
        self._asked_ms = now_ms - max(0, self._clock.wall_ms() - versions.loaded_ms)

    def _take(self, rows: pa.RecordBatch, now_ms: float) -> None:
        columns = self._what.keys_of(rows)
        whole = without_null(columns, rows.num_rows)
        # a row with a NULL key never matches
        if not whole.all():
            rows = rows.filter(pa.array(whole))
            columns = self._what.keys_of(rows)
        self._loaded = LookupCache(
            self._what.key_types,
            self._what.schema,
            max_rows=float("inf"),
            write_ms=None,
            access_ms=None,
            missing=True,
        )
        # the whole table as a cache without limits
        index = KeyIndex(self._what.key_types)
        numbers = index.lookup_or_insert(columns, rows.num_rows)
        self._loaded.put(index.keys(np.arange(len(index))), numbers, rows, now_ms)

    def _meet(self, rows: Asked, now_ms: float) -> None:
        assert self._loaded is not None
        self.hits += rows.missing.size
        rows.missing = np.zeros(0, np.int64)
        # A batch whose keys are all NULL joins nothing.
        if rows.keys and len(rows.keys[0]):
            _, rows.known_at, rows.known = self._loaded.get(rows.keys, now_ms)
