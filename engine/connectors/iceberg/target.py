"""Commits the rows of epochs to an Iceberg table: appended, or replaced by PRIMARY KEY; or replaces all rows.

The epoch of each writer is a property of the table and of the snapshot, set by the transaction that adds its
rows. A commit requires that the newest snapshot is the one it has read, so one of two that race fails. The
library would then add the rows again by itself: its retries are off, and ours ask for the epoch first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import to_arrow
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.failpoints import failpoint
from penstock.engine.connectors.iceberg.file_planning import has_equality_deletes
from penstock.engine.connectors.iceberg.iceberg_table import (
    arrow_schema,
    opened,
    opened_catalog,
    partition_columns,
    refreshed,
    refused,
    where,
)
from penstock.engine.connectors.iceberg.key_removal import remove_keys
from penstock.engine.connectors.iceberg.replaced_files import (
    NewDataFiles,
    partition_filter,
    replace_files,
)
from penstock.engine.connectors.iceberg.stored_types import as_stored, is_special, refuse_uuid_keys
from penstock.engine.connectors.iceberg.table_schema import new_table
from penstock.engine.connectors.lakehouse.columns import (
    RowsFitter,
    check_declared_partitions,
    check_types,
    missing,
    refuse_missing,
    refuse_undeclared,
)
from penstock.engine.connectors.lakehouse.commit_conflicts import (
    commit_lock,
    conflicts_persist,
    superseded,
)
from penstock.engine.connectors.row_replacement.replaced_table import RowReader, Version, other_version
from penstock.engine.metrics.operator_metrics import OperatorMetrics

EPOCH, ATTEMPT = "penstock.epoch.", "penstock.attempt."
"""Properties of the table; the name of the writer follows."""

_FAILED = "CommitFailedException"


class IcebergTarget:
    """An EpochTarget. The table is made when the first writer is fenced, where there is none.

    Each attempt has a number in the table's properties, and adds a snapshot without rows when it starts. So
    the commit of an earlier attempt fails, even when it began before.
    """

    def __init__(self, table: CatalogTable, metrics: OperatorMetrics, merges: bool = True) -> None:
        self._table = table
        self._metrics = metrics
        self._catalog = opened_catalog(table.options)
        self._fields = table.physical_fields
        self._key = table.primary_key
        # rows of a key replace earlier ones; a statement that replaces all rows has each key once
        self._merges = merges and bool(self._key)
        self.form = StagedForm.UPSERTS if self._merges else StagedForm.INSERTS
        self._tries = int(option(table, "sink.max-retries") or 0) + 1
        self._where = where(table)
        self._lock = commit_lock(f"{table.options.get('uri', '')} {table.options['table-name']}")
        self._attempts: dict[str, int] = {}
        self._iceberg: Any = None
        self._schema_id: int | None = None
        self._fitter: RowsFitter | None = None
        # the columns of the table, in the engine's layouts but for those that it has not
        self._stored = pa.schema([])

    def fence(self, writers: list[EpochWriter]) -> None:
        """Give this attempt a number for each writer, in one snapshot without rows. DAT-53xx."""
        with self._lock:
            self._iceberg = self._opened_or_created()
            self._add_columns()

            def commit() -> None:
                self._refresh()
                for writer in writers:
                    self._attempts[writer.name] = self._number(ATTEMPT, writer) + 1
                marks = {ATTEMPT + writer.name: self._attempts[writer.name] for writer in writers}
                self._commit(None, marks)

            self._again(commit)

    def last_committed(self, writer: EpochWriter) -> int:
        """Return the writer's epoch in the newest metadata. DAT-5303."""
        with self._lock:
            self._refresh()
            return self._number(EPOCH, writer)

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Add or replace an epoch's rows; nothing when the table has the epoch. STA-3504, DAT-53xx."""
        # a commit that another one got ahead of writes its files anew, so the rows are held
        held = list(rows)
        with self._lock:

            def once() -> None:
                if self._is_done(writer, epoch):
                    self._metrics.count("epochs_skipped")
                    return
                failpoint("L1")
                self._commit(held, {EPOCH + writer.name: epoch})
                failpoint("L2")

            self._again(once)

    def version(self, *, rewrites: bool) -> Version:
        """Return the newest snapshot, -1 for a table without one. DAT-53xx."""
        with self._lock:
            self._iceberg = opened(self._table, self._catalog)
            self._add_columns()
            self._refresh()
            if rewrites:
                refuse_undeclared(self._fields, self._stored, self._where)
            return self._snapshot()

    def _snapshot(self) -> int:
        snapshot = self._iceberg.current_snapshot()
        return -1 if snapshot is None else int(snapshot.snapshot_id)

    def overwrite(
        self, statement: str, rows: RowReader, partitions: pa.Table | None, read: Version | None = None
    ) -> None:
        """Replace all rows, or those of some partitions, in one snapshot. DAT-4618, DAT-53xx. Files are
        written as rows are read, and once: a commit that another one got ahead of is tried again with the
        same files.
        """
        mark = EPOCH + EpochWriter(statement, "overwrite", 0).name
        new_files = NewDataFiles()
        with self._lock:
            self._iceberg = self._opened_or_created()
            self._add_columns()

            def once() -> None:
                self._refresh()
                # no partition has rows, or an earlier try has succeeded
                none = partitions is not None and not partitions.num_rows
                if none or mark in self._iceberg.metadata.properties:
                    return
                if read is not None and self._snapshot() != read:
                    raise other_version(self._where)
                failpoint("L1")
                new_files.write(self._iceberg, map(self._fit, rows()), self._stored)
                self._replace(new_files, partitions, {mark: "1"})
                failpoint("L2")

            try:
                self._again(once)
            except BaseException:
                new_files.delete_unless_committed()
                raise

    def _replace(self, new_files: NewDataFiles, partitions: pa.Table | None, marks: dict[str, str]) -> None:
        names = {name.lower(): name for name in self._stored.names}
        columns = [] if partitions is None else [names[name.lower()] for name in partitions.column_names]
        transaction = self._iceberg.transaction()
        transaction.set_properties(marks)
        chosen = partition_filter(partitions, columns)
        replace_files(self._iceberg, transaction, new_files.files, chosen, marks, self._where)
        new_files.commit(transaction)

    def retire(self, writer: EpochWriter) -> None:
        """Nothing: two properties a writer stay in the table."""

    def close(self) -> None:
        """Close the catalog's connection."""
        self._iceberg = None
        self._catalog.close()

    def _opened_or_created(self) -> Any:
        try:
            return opened(self._table, self._catalog)
        except PenstockError as error:
            if error.code != "DAT-5301":
                raise
        try:
            create_iceberg_table(self._table, self._catalog)
        except Exception as error:  # noqa: BLE001  another process may have created it meanwhile
            try:
                return opened(self._table, self._catalog)
            except PenstockError:
                raise refused(self._where, "created", error) from error
        return opened(self._table, self._catalog)

    def _add_columns(self) -> None:
        """Add the declared columns that the table has not, where the table's options say so."""
        if option(self._table, "sink.schema-evolution") != "additive":
            return

        def add() -> None:
            refreshed(self._table, self._iceberg)
            absent = missing(self._fields, arrow_schema(self._iceberg))
            if not absent:
                return
            fields = [pa.field(field.name, to_arrow(field.type)) for field in absent]
            with self._iceberg.update_schema() as update:
                update.union_by_name(pa.schema(fields))

        self._again(add)

    def _refresh(self) -> None:
        """Take over what others committed, and check the table's columns against the declared ones."""
        if self._iceberg is None:
            self._iceberg = opened(self._table, self._catalog)
        else:
            refreshed(self._table, self._iceberg)
        number = self._iceberg.schema().schema_id
        if number == self._schema_id:
            return
        there = arrow_schema(self._iceberg)
        refuse_missing(self._fields, there, self._where, written=True)
        check_types(self._fields, there, self._where)
        check_declared_partitions(self._table.partitioned_by, partition_columns(self._iceberg), self._where)
        self._fitter = RowsFitter(self._fields, there, self._where, keep=1 if self._merges else 0)
        kinds = {column.name: column.type for column in self._iceberg.schema().as_arrow()}
        refuse_uuid_keys(kinds, self._key, self._where)
        special = {name: kind for name, kind in kinds.items() if is_special(kind)}
        self._stored = pa.schema(
            [column.with_type(special.get(column.name, column.type)) for column in self._fitter.schema]
        )
        self._schema_id = number

    def _number(self, prefix: str, writer: EpochWriter) -> int:
        return int(self._iceberg.metadata.properties.get(prefix + writer.name, 0))

    def _is_done(self, writer: EpochWriter, epoch: int) -> bool:
        self._refresh()
        mine, newest = self._attempts.get(writer.name), self._number(ATTEMPT, writer)
        if mine is not None and newest != mine:
            raise superseded(self._where, newest, mine)
        return self._number(EPOCH, writer) >= epoch

    def _commit(self, rows: list[pa.RecordBatch] | None, marks: dict[str, int]) -> None:
        """Commit rows and marks in one transaction. It always adds a snapshot, so that others see it."""
        assert self._fitter is not None
        texts = {name: str(number) for name, number in marks.items()}
        fitted = [self._fit(batch) for batch in rows or ()]
        transaction = self._iceberg.transaction()
        transaction.set_properties(texts)
        with warnings.catch_warnings():
            # a key that is not there yet: "delete operation did not match any records"
            warnings.simplefilter("ignore")
            if self._merges and fitted:
                table = pa.Table.from_batches(fitted)
                gone = table.column(0)
                table = table.drop_columns([table.schema.names[0]])
                kept = self._remove(transaction, table, texts)
                fitted_table = pa.concat_tables([*kept, table.filter(pc.invert(gone)).cast(self._stored)])
            else:
                fitted_table = pa.Table.from_batches(fitted, schema=self._stored)
            transaction.append(fitted_table, snapshot_properties=texts)
            transaction.commit_transaction()

    def _fit(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows as the table has them, in the layouts of its columns."""
        assert self._fitter is not None
        fitted = self._fitter.fit(rows)
        leading = fitted.num_columns - len(self._stored)
        arrays = fitted.columns[:leading] + [
            as_stored(array, column.type, column.name, self._where)
            for array, column in zip(fitted.columns[leading:], self._stored, strict=True)
        ]
        fields = [fitted.schema.field(place) for place in range(leading)]
        # a deleted row has its key only: NULL elsewhere, also where the table allows none
        stored = [column.with_nullable(True) if leading else column for column in self._stored]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *stored]))

    def _remove(self, transaction: Any, rows: pa.Table, marks: dict[str, str]) -> list[pa.Table]:
        """Remove the rows of the keys of some rows; return rows of files that go with them, to be added
        again."""
        from pyiceberg.table.upsert_util import create_match_filter

        names = {name.lower(): name for name in rows.schema.names}
        key = [names[name.lower()] for name in self._key]
        matched = create_match_filter(rows, key)
        if not has_equality_deletes(self._iceberg):
            transaction.delete(matched, snapshot_properties=marks)
            return []
        kept = remove_keys(self._iceberg, transaction, rows.select(key), matched, marks, self._where)
        return [table.cast(self._stored) for table in kept]

    def _again(self, act: Callable[[], None]) -> None:
        """Do what another commit may get ahead of; each try reads the metadata anew. DAT-5313."""
        for left in range(self._tries - 1, -1, -1):
            try:
                act()
                return
            except PenstockError:
                raise
            except Exception as error:
                # what the table thinks of itself after a failed commit is not to be trusted
                self._iceberg = None
                if type(error).__name__ != _FAILED:
                    raise refused(self._where, "written", error) from error
                self._metrics.count("commit_conflicts")
                if not left:
                    raise conflicts_persist(self._where, error) from error


def create_iceberg_table(table: CatalogTable, catalog: Any) -> None:
    """Create a table in a catalog, and its database. The library's errors are raised as they are."""
    name = table.options["table-name"]
    catalog.create_namespace_if_not_exists(name.partition(".")[0])
    catalog.create_table(name, **new_table(table))
