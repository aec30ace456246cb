"""Commits the rows of epochs to a Delta table: appended, or merged by PRIMARY KEY; or replaces its rows.

The table's log has a version number for each writer, set by the commit that adds its rows: ``txn`` actions.
The library accepts the same number twice from one handle, and refuses it only of two that race. So a commit
first reads the number of a refreshed table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import to_arrow
from penstock.engine.api.epoch_target import DELETED, EpochWriter, StagedForm
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.operator import OperatorEvent, Recovered, Warned
from penstock.engine.connectors.delta.constraints import (
    check_partitions,
    generated_columns,
    refuse_empty_texts,
    refused_commit,
    strict_partitions,
)
from penstock.engine.connectors.delta.delta_table import (
    arrow_schema,
    library,
    opened,
    partition_columns,
    path_of,
    refused,
    storage_options,
    words_of,
)
from penstock.engine.connectors.delta.partition_predicate import partition_predicate
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

# the library's error when another commit came between that this one contradicts
_FAILED = "CommitFailedError"


class DeltaTarget:
    """An EpochTarget. The table is made when the first writer is fenced, where there is none.

    Each attempt has a number in the log, too. A commit names it, so the commit of an earlier attempt fails
    with STA-3504, even when it began before. Maintenance is optional: what fails of it is counted and
    reported, and the job continues.
    """

    def __init__(
        self,
        table: CatalogTable,
        metrics: OperatorMetrics,
        report_event: Callable[[OperatorEvent], None] = lambda event: None,
        merges: bool = True,
    ) -> None:
        self._table = table
        self._metrics = metrics
        self._report_event = report_event
        self._library = library()
        self._fields = table.physical_fields
        self._key = table.primary_key
        # rows of a key replace earlier ones; a statement that replaces all rows has each key once
        self._merges = merges and bool(self._key)
        self.form = StagedForm.UPSERTS if self._merges else StagedForm.INSERTS
        self._tries = int(option(table, "sink.max-retries") or 0) + 1
        self._where = f"the Delta table at {redact_url(path_of(table))}"
        self._lock = commit_lock(path_of(table))
        self._attempts: dict[str, int] = {}
        self._delta: Any = None
        # the columns of the table that rows are fitted to, and the fitter for them
        self._there: pa.Schema | None = None
        self._fitter: RowsFitter | None = None
        # partition columns that take no empty text
        self._strict: tuple[str, ...] = ()
        self._commits = 0
        # whether the last piece of maintenance failed
        self._neglected = False

    def fence(self, writers: list[EpochWriter]) -> None:
        """Give this attempt a number for each writer, in one commit without rows. DAT-53xx."""
        with self._lock:
            self._delta = self._opened_or_created()
            self._add_columns()

            def commit() -> None:
                self._refresh()
                for writer in writers:
                    before = self._number(_attempt_of(writer))
                    self._attempts[writer.name] = before + 1
                marks = [(_attempt_of(writer), self._attempts[writer.name]) for writer in writers]
                self._execute(marks, lambda: self._commit_nothing(marks))

            self._again(commit)

    def last_committed(self, writer: EpochWriter) -> int:
        """Return the writer's number in the newest version. DAT-5303."""
        with self._lock:
            self._refresh()
            return self._number(writer.name)

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Append or merge an epoch's rows; nothing when the table has the epoch. STA-3504, DAT-53xx."""
        merged = pa.Table.from_batches(kept) if self._merges and (kept := list(rows)) else None
        with self._lock:

            def once() -> None:
                if self._is_done(writer, epoch):
                    self._metrics.count("epochs_skipped")
                    return
                failpoint("L1")
                marks = [(writer.name, epoch), *self._attempt_mark(writer)]
                # read anew by each try: rows that are appended are not held
                appended = None if self._merges else _not_empty(iter(rows))
                if merged is not None:
                    self._execute(marks, lambda: self._merge(merged, marks))
                elif appended is not None:
                    self._execute(marks, lambda: self._write(appended, marks))
                else:
                    self._execute(marks, lambda: self._commit_nothing(marks))
                failpoint("L2")
                self._commits += 1
                self._compact(writer)

            self._again(once)

    def version(self, *, rewrites: bool) -> Version:
        """Return the number of the newest version. DAT-53xx."""
        with self._lock:
            self._delta = opened(self._table)
            self._add_columns()
            self._refresh()
            if rewrites:
                assert self._fitter is not None
                refuse_undeclared(self._fields, self._fitter.schema, self._where)
            return int(self._delta.version())

    def overwrite(
        self, statement: str, rows: RowReader, partitions: pa.Table | None, read: Version | None = None
    ) -> None:
        """Replace all rows, or those of some partitions, in one version. DAT-4618, DAT-53xx."""
        mark = EpochWriter(statement, "overwrite", 0).name
        with self._lock:
            self._delta = self._opened_or_created()
            self._add_columns()

            def once() -> None:
                self._refresh()
                # no partition has rows, or an earlier try has succeeded
                if (partitions is not None and not partitions.num_rows) or self._number(mark):
                    return
                if read is not None and self._delta.version() != read:
                    raise other_version(self._where)
                failpoint("L1")
                predicate = None
                if partitions is not None:
                    names = {name.lower(): name for name in arrow_schema(self._delta).names}
                    columns = [names[name.lower()] for name in partitions.column_names]
                    predicate = partition_predicate(partitions, columns, self._where)
                marks = [(mark, 1)]
                self._execute(marks, lambda: self._write(rows(), marks, "overwrite", predicate, read))
                failpoint("L2")

            self._again(once)

    def _execute(self, marks: list[tuple[str, int]], act: Callable[[], None]) -> None:
        """Do a commit. The library checkpoints and cleans the log behind one, and raises what fails of that:
        an error is passed over when the table has the commit's marks.
        """
        try:
            act()
        except Exception as error:  # the library's own classes
            if type(error).__name__ == _FAILED or not self._has_marks(marks):
                raise
            self._neglect("log_maintenance_failed", "its log was not checkpointed or cleaned", error)

    def _has_marks(self, marks: list[tuple[str, int]]) -> bool:
        try:
            self._refresh()
            return all(self._number(name) == number for name, number in marks)
        except PenstockError:
            # the commit's own error says more
            return False

    def retire(self, writer: EpochWriter) -> None:
        """Nothing: two numbers a writer stay in the log."""

    def close(self) -> None:
        """Nothing is open: the library's table holds no files or connections."""
        self._delta = None

    def _opened_or_created(self) -> Any:
        try:
            return opened(self._table)
        except PenstockError as error:
            if error.code != "DAT-5301":
                raise
        schema = pa.schema(
            [pa.field(field.name, to_arrow(field.type), field.nullable) for field in self._fields]
        )
        feed = {"delta.enableChangeDataFeed": "true"} if option(self._table, "change-data-feed") else {}
        try:
            self._library.DeltaTable.create(
                path_of(self._table),
                schema,
                mode="ignore",
                partition_by=list(self._table.partitioned_by) or None,
                configuration=feed or None,
                storage_options=storage_options(self._table) or None,
            )
        except Exception as error:  # noqa: BLE001  another process may have created it meanwhile
            try:
                return opened(self._table)
            except PenstockError:
                raise refused(self._table, "created", error) from error
        return opened(self._table)

    def _add_columns(self) -> None:
        """Add the declared columns that the table has not, where the table's options say so. DAT-5306."""
        there = arrow_schema(self._delta)
        absent = missing(self._fields, there)
        if not absent or option(self._table, "sink.schema-evolution") != "additive":
            return
        fields = [pa.field(field.name, to_arrow(field.type)) for field in absent]
        added = self._library.Schema.from_arrow(pa.schema(fields)).fields

        def add() -> None:
            self._delta = opened(self._table)
            names = {name.lower() for name in arrow_schema(self._delta).names}
            new = [field for field in added if field.name.lower() not in names]
            if new:
                self._delta.alter.add_columns(new)

        self._again(add)

    def _refresh(self) -> None:
        """Take over what others committed, and check the table's columns against the declared ones."""
        if self._delta is None:
            self._delta = opened(self._table)
        try:
            self._delta.update_incremental()
        except Exception as error:
            self._delta = None
            raise refused(self._table, "read", error) from error
        there = arrow_schema(self._delta)
        if self._there is not None and there.equals(self._there):
            return
        refuse_missing(self._fields, there, self._where, written=True)
        check_types(self._fields, there, self._where)
        check_declared_partitions(self._table.partitioned_by, partition_columns(self._delta), self._where)
        check_partitions(self._delta, there, self._key, self._where)
        self._strict = strict_partitions(self._delta, there, self._key)
        # the library computes generated columns that the rows have not
        declared = {field.name.lower() for field in self._fields}
        computed = {name for name in generated_columns(self._delta) if name.lower() not in declared}
        written = pa.schema([column for column in there if column.name not in computed])
        self._fitter = RowsFitter(self._fields, written, self._where, keep=1 if self._merges else 0)
        self._there = there

    def _is_done(self, writer: EpochWriter, epoch: int) -> bool:
        self._refresh()
        mine = self._attempts.get(writer.name)
        newest = self._number(_attempt_of(writer))
        if mine is not None and newest != mine:
            raise superseded(self._where, newest, mine)
        return self._number(writer.name) >= epoch

    def _number(self, name: str) -> int:
        try:
            return int(self._delta.transaction_version(name) or 0)
        except Exception as error:  # the library reads the log again
            self._delta = None
            raise refused(self._table, "read", error) from error

    def _attempt_mark(self, writer: EpochWriter) -> list[tuple[str, int]]:
        mine = self._attempts.get(writer.name)
        return [] if mine is None else [(_attempt_of(writer), mine)]

    def _properties(self, marks: list[tuple[str, int]], retries: int | None = None) -> Any:
        # without retries of the library: a commit that another one got ahead of fails
        transactions = [self._library.Transaction(name, number) for name, number in marks]
        return self._library.CommitProperties(max_commit_retries=retries, app_transactions=transactions)

    def _commit_nothing(self, marks: list[tuple[str, int]]) -> None:
        self._delta.create_write_transaction(
            [],
            "append",
            self._delta.schema(),
            partition_by=list(partition_columns(self._delta)) or None,
            commit_properties=self._properties(marks),
        )

    def _fit(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        assert self._fitter is not None
        fitted = self._fitter.fit(rows)
        refuse_empty_texts(fitted, self._strict, self._where)
        return fitted

    def _write(
        self,
        rows: Iterator[pa.RecordBatch],
        marks: list[tuple[str, int]],
        mode: Literal["append", "overwrite"] = "append",
        predicate: str | None = None,
        read: Version | None = None,
    ) -> None:
        assert self._fitter is not None
        refusals: list[PenstockError] = []

        def fit(batch: pa.RecordBatch) -> pa.RecordBatch:
            try:
                return self._fit(batch)
            except PenstockError as error:
                refusals.append(error)
                raise

        fitted = pa.RecordBatchReader.from_batches(self._fitter.schema, map(fit, rows))
        try:
            self._library.write_deltalake(
                self._delta,
                fitted,
                mode=mode,
                predicate=predicate,
                commit_properties=self._properties(marks, None if read is None else 0),
            )
        except Exception as error:
            # the library pulls the rows, and makes its own error of what that raises
            if not refusals:
                raise
            raise refusals[0] from error

    def _merge(self, rows: pa.Table, marks: list[tuple[str, int]]) -> None:
        assert self._fitter is not None
        fitted = pa.Table.from_batches([self._fit(batch) for batch in rows.to_batches()])
        # a deleted row has its key only: NULL elsewhere, also where the table allows none
        fitted = fitted.cast(pa.schema([field.with_nullable(True) for field in fitted.schema]))
        names = {name.lower(): name for name in self._fitter.schema.names}
        keys = [names[name.lower()] for name in self._key]
        declared = {field.name.lower() for field in self._fields}
        # a column that is not declared keeps its value where the row is there
        values = {
            _quoted(name): f"source.{_quoted(name)}"
            for name in self._fitter.schema.names
            if name.lower() in declared
        }
        merge = self._delta.merge(
            fitted,
            " AND ".join(f"target.{_quoted(key)} = source.{_quoted(key)}" for key in keys),
            source_alias="source",
            target_alias="target",
            # the least and greatest keys of the rows say which files can have them
            streamed_exec=False,
            commit_properties=self._properties(marks),
        )
        (
            merge.when_matched_delete(predicate=f"source.{DELETED}")
            .when_matched_update(values, predicate=f"NOT source.{DELETED}")
            .when_not_matched_insert(values, predicate=f"NOT source.{DELETED}")
            .execute()
        )

    def _compact(self, writer: EpochWriter) -> None:
        """Merge small files now and then. The rows are committed: what fails is left to the next time."""
        if writer.subtask or not option(self._table, "auto-compaction"):
            return
        if self._commits % int(option(self._table, "compaction.commits") or 1):
            return
        try:
            self._refresh()
            self._delta.optimize.compact(target_size=int(option(self._table, "compaction.file-size") or 0))
        except Exception as error:  # noqa: BLE001  the library's own classes
            if type(error).__name__ == _FAILED:
                self._metrics.count("compactions_skipped")
            else:
                self._neglect("compactions_failed", "its small files were not merged", error)
            return
        self._metrics.count("compactions")
        if self._neglected:
            self._neglected = False
            self._report_event(Recovered(f"{self._where} is maintained again"))

    def _neglect(self, counter: str, what: str, error: Exception) -> None:
        """Count and report maintenance that failed."""
        self._metrics.count(counter)
        self._neglected = True
        # what the handle thinks of the table after an error is not to be trusted
        self._delta = None
        cause = refused(self._table, "maintained", error)
        self._report_event(Warned(cause.code, f"{self._where}: {what}: {words_of(error)}"))

    def _again(self, act: Callable[[], None]) -> None:
        """Do what another commit may get ahead of; each try reads the table anew. DAT-5313."""
        for left in range(self._tries - 1, -1, -1):
            try:
                act()
                return
            except PenstockError:
                raise
            except Exception as error:
                self._delta = None
                # not another writer: the commit contradicts the table
                if (contradiction := refused_commit(self._where, error)) is not None:
                    raise contradiction from error
                if type(error).__name__ != _FAILED:
                    raise refused(self._table, "written", error) from error
                self._metrics.count("commit_conflicts")
                if not left:
                    raise conflicts_persist(self._where, error) from error


def _attempt_of(writer: EpochWriter) -> str:
    return f"{writer.name}-attempt"


def _quoted(name: str) -> str:
    return f"`{name}`"


def _not_empty(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch] | None:
    """Return rows without changing them, ``None`` when there are none."""
    first = next((batch for batch in rows if batch.num_rows), None)
    return None if first is None else _chained(first, rows)


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
