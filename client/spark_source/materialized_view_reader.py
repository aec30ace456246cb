"""The batch reader of a materialized view: it reads the rows from a completed checkpoint of its job."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.spark_source.committed_files import BATCH_ROWS
from penstock.client.spark_source.source_options import SourceOptions
from penstock.client.spark_source.spark_schema import arrow_schema, as_spark_takes_it
from penstock.engine.changelog.consolidate import summed
from penstock.engine.checkpoint.manifest import Manifest, OperatorRole
from penstock.engine.checkpoint.reader import CheckpointReader
from penstock.engine.state.rows.table_contents import column_name
from penstock.engine.storage.local import LocalStorage, make_private
from penstock.engine.storage.storage import directory_name

PINS = "readers"
_TRIES = 20
# no query reads one pinned state for longer than an hour
_PIN_KEPT_S = 3600.0
_STATE = "rows"


@dataclass(frozen=True)
class PinnedView:
    """A checkpoint whose files are protected from deletion while they are read, by links in a directory of
    the job.
    """

    directory: Path
    checkpoint_id: int
    schema: pa.Schema


class ViewReader(DataSourceReader):
    """Reads the rows of a view's state, each as often as its weight. It pins the newest checkpoint when the
    query is planned.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        # one task: retractions in the parts of several subtasks must be summed together
        return [InputPartition(pinned_view(self._options))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in _rows(partition.value).select(self._schema.names).to_batches(BATCH_ROWS):
            if batch.num_rows:
                yield as_spark_takes_it(batch, self._schema)


def pinned_view(options: SourceOptions) -> PinnedView:
    """Pin the requested checkpoint, or the newest, of the job that fills a view.

    DAT-4627 where no job of that view stores its state, STA-3031 for a checkpoint that is no longer retained.
    """
    job = options.path / directory_name(f"materialized-view-{options.view}")
    if not job.is_dir():
        views = sorted(
            path.name.removeprefix("materialized-view-") for path in options.path.glob("materialized-view-*")
        )
        message = f"no job in {options.path} fills a materialized view {options.view}"
        hint = (
            f"there are {', '.join(views)}"
            if views
            else "path is the --state directory of penstock; views over finite tables keep no state"
        )
        raise PenstockError("DAT-4627", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42704")
    reader = CheckpointReader(LocalStorage(job))
    # a checkpoint may be superseded, and its files deleted, between reading its manifest and linking them
    for attempt in range(_TRIES):
        try:
            manifest = reader.manifest(options.checkpoint)
            return _pin(job, manifest)
        except FileNotFoundError:  # it was superseded meanwhile, and its files deleted
            if attempt + 1 == _TRIES:
                raise
    raise AssertionError("the last try returns or raises")


def _pin(job: Path, manifest: Manifest) -> PinnedView:
    """Link the files of a checkpoint into a directory of its own, the manifest last. Links older than an hour
    are removed.
    """
    target = job / PINS / f"chk-{manifest.checkpoint_id}"
    name = f"chk-{manifest.checkpoint_id}.manifest.json"
    try:
        make_private(target)
        # renew an existing pin: its age counts from the last use
        os.utime(target)
        # the manifest last: a directory with a manifest has all its files
        for file in (*(file.name for file in manifest.files), name):
            if not (target / file).exists():
                _link(job / file, target / file)
        _tidy(target)
    except PermissionError as error:
        message = (
            f"the state of the view in {job} cannot be pinned while it is read: {job / PINS} cannot "
            "be written"
        )
        raise PenstockError(
            "DAT-4628",
            message,
            hint="run Spark as a user who may write there",
            kind=Kind.EXTERNAL,
            sqlstate="42501",
        ) from error
    pinned = PinnedView(target, manifest.checkpoint_id, pa.schema([]))
    # after key_group and weight come the columns of the view
    state = _state(pinned)
    fields = (
        []
        if state is None
        else [pa.field(column_name(field), field.type) for field in list(state.schema)[2:]]
    )
    return PinnedView(target, manifest.checkpoint_id, pa.schema(fields))


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except FileExistsError:  # another query pins the same checkpoint
        return
    except FileNotFoundError:
        raise
    except OSError:  # a filesystem without hard links
        shutil.copy(source, target)  # with its mode


def _tidy(fresh: Path) -> None:
    """Remove pins that are too old to be in use, by the clock of the filesystem."""
    # renewed by _pin: the filesystem may be of a machine with another clock
    now_s = fresh.stat().st_mtime
    for other in fresh.parent.iterdir():
        if other != fresh and now_s - other.stat().st_mtime > _PIN_KEPT_S:
            shutil.rmtree(other, ignore_errors=True)


def _state(pinned: PinnedView) -> pa.Table | None:
    """Return the state of the view's sink: key_group, weight, columns."""
    reader = CheckpointReader(LocalStorage(pinned.directory))
    manifest = reader.manifest(pinned.checkpoint_id)
    sink = next(operator.operator_id for operator in manifest.operators if operator.role is OperatorRole.SINK)
    return reader.table(manifest, sink, _STATE)


def _rows(pinned: PinnedView) -> pa.Table:
    """Return the rows of a view. A subtask may retract rows of another one, so the parts are summed."""
    state = _state(pinned)
    if state is None:
        return pinned.schema.empty_table()
    weights = state.column(1).to_numpy()
    rows = pa.Table.from_arrays(state.columns[2:], schema=pinned.schema)
    # a retraction in the part of one subtask removes a row in that of another
    if (weights < 0).any():
        rows, weights = summed(rows, weights)
    # a row of weight 3 is three rows of the view
    return rows if (weights == 1).all() else rows.take(pa.array(np.repeat(np.arange(rows.num_rows), weights)))
