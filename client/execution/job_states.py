"""States of jobs and savepoints as tables: which there are, their columns, and their entries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field, Schema
from penstock.catalog.state_reference import StateColumns, StateReference, state_reference
from penstock.catalog.types import BIGINT, STRING, from_arrow

if TYPE_CHECKING:
    from penstock.client.execution.engine_jobs import EngineJobs
    from penstock.engine.api.locations import Location
    from penstock.engine.checkpoint.manifest import Manifest
    from penstock.engine.checkpoint.reader import CheckpointReader, StateLine
    from penstock.engine.job.job import Job

_LIST = (
    Field("operator", STRING, False),
    Field("operator_id", STRING, False),
    Field("state", STRING, False),
    Field("kind", STRING, False),
    Field("entries", BIGINT, False),
    Field("size_bytes", BIGINT, False),
    Field("checkpoint", BIGINT, False),
)
"""Columns of the list of states."""
_ITEM = (Field("item", STRING, False),)
"""The column of a state that is a list: each item as JSON."""


_VIEW_ROWS = "rows"
"""The state in which the sink of a materialized view keeps its rows."""


class JobStates:
    """Reads states out of completed checkpoints; a running job is not disturbed. ``state_dir``: where jobs of
    other processes, and of this one before, have theirs.
    """

    def __init__(self, jobs: EngineJobs, state_dir: Location | None) -> None:
        self._jobs = jobs
        self._state_dir = state_dir

    def state_columns(self, reference: StateReference) -> StateColumns:
        """Return the columns of a state, and the reference with the checkpoint it is read from. Raises
        STA-3031 to STA-3033 and STA-3061 where it is not to be found.
        """
        reader = self._reader(reference)
        manifest = reader.manifest(reference.checkpoint)
        found = replace(reference, checkpoint=manifest.checkpoint_id)
        if reference.operator is None:
            return StateColumns(_LIST, found)
        line = _find(reader.states(manifest), reference)
        found = replace(found, operator=line.operator_id, state=line.state)
        if not line.keyed:
            return StateColumns(_ITEM, found)
        first = next(reader.pieces(manifest, line.operator_id, line.state), None)
        # an empty state has no file, and so no columns but this one
        schema = pa.schema([("key_group", pa.int64())]) if first is None else first.schema
        return StateColumns(tuple(Field(column.name, from_arrow(column.type)) for column in schema), found)

    def view_rows(self, view: str, checkpoint: int | None, until_us: int | None) -> StateReference | None:
        """Return the state that has the rows of a materialized view at a checkpoint; None where it had none.
        Raises STA-3062 for a checkpoint that is not retained, with those that are, and for a view whose job
        writes none.
        """
        job = self._view_job(view)
        if job is None or job.checkpoint_storage is None:
            raise PenstockError(
                "STA-3062",
                f"materialized view {view} writes no checkpoints, so only its present rows can be read",
                hint="open the session with a state directory; a view over tables that end writes none",
                sqlstate="55000",
            )
        reader = self._reader(StateReference(job.job_id))
        manifests = [line.manifest for line in reader.lines() if line.manifest is not None]
        found = [
            manifest
            for manifest in manifests
            if manifest.checkpoint_id == checkpoint
            or (until_us is not None and manifest.created_at_ms * 1000 <= until_us)
        ]
        if not found:
            raise _not_retained(view, checkpoint, manifests)
        lines = [line for line in reader.states(found[-1]) if line.state == _VIEW_ROWS and line.keyed]
        number = found[-1].checkpoint_id
        sinks = [line for line in lines if line.operator == f"sink {view}"]
        return StateReference(job.job_id, None, number, sinks[0].operator_id, _VIEW_ROWS) if sinks else None

    def rows_read(self, view: str) -> Mapping[str, list[tuple[str, int]]]:
        """Return what the job of a materialized view has read at its newest checkpoint, by table: the path
        of each file and the number of its rows, or ``topic-partition`` and the next offset. Nothing where the
        job writes no checkpoints.
        """
        job = self._view_job(view)
        if job is None or job.checkpoint_storage is None:
            return {}
        reader = self._reader(StateReference(job.job_id))
        manifest = reader.manifest()
        names = {operator.operator_id: operator.name for operator in manifest.operators}
        read: dict[str, list[tuple[str, int]]] = {}
        for operator_id, state, item in reader.items(manifest):
            kind, _, table = names.get(operator_id, "").partition(" ")
            if (kind, state) != ("source", "splits"):
                continue
            split, position = str(item["split"]), item.get("position", {})
            if "row" in position:
                read.setdefault(table, []).append((split.rpartition("@")[0], int(position["row"])))
            elif "offset" in position:
                read.setdefault(table, []).append((split, int(position["offset"])))
        # a file that was cut into ranges has several positions, which are none of the file's
        return {table: files for table, files in read.items() if len(dict(files)) == len(files)}

    def _view_job(self, view: str) -> Job | None:
        name = f"materialized-view-{view}".lower()
        return next((job for job in reversed(self._jobs.all()) if job.name.lower() == name), None)

    def read(self, options: Mapping[str, str]) -> Iterator[pa.Table]:
        """Yield the entries of the state that ``state_columns`` has found, with the types it said. Raises
        STA-3031 when its checkpoint has been superseded and deleted since.
        """
        reference = state_reference(options)
        reader = self._reader(reference)
        manifest = reader.manifest(reference.checkpoint)
        if reference.operator is None:
            yield _list(reader.states(manifest), manifest)
            return
        line = _find(reader.states(manifest), reference)
        if not line.keyed:
            items = [
                json.dumps(item, sort_keys=True)
                for operator_id, state, item in reader.items(manifest)
                if (operator_id, state) == (line.operator_id, line.state)
            ]
            yield pa.table({"item": pa.array(items, pa.string())})
            return
        for piece in reader.pieces(manifest, line.operator_id, line.state):
            fields = [Field(column.name, from_arrow(column.type)) for column in piece.schema]
            yield piece.cast(Schema(tuple(fields)).to_arrow())

    def _reader(self, reference: StateReference) -> CheckpointReader:
        # the engine: only where a state is read
        from penstock.engine.api.locations import parse_location
        from penstock.engine.checkpoint.reader import CheckpointReader
        from penstock.engine.storage.locations import exists, storage_at

        if reference.savepoint is not None:
            location = parse_location(reference.savepoint)
            if not exists(location):
                raise PenstockError(
                    "STA-3033",
                    f"there is no directory {reference.savepoint}",
                    hint="CREATE SAVEPOINT and STOP JOB .. WITH SAVEPOINT print the path of a savepoint",
                    sqlstate="42704",
                )
            return CheckpointReader(storage_at(location))
        job_id = reference.job or ""
        known = {job.job_id: job for job in self._jobs.all()}
        job = known.get(job_id)
        if job is not None and job.checkpoint_storage is not None:
            return CheckpointReader(job.checkpoint_storage)
        # of a job that this process does not run: one name, never a path
        if (
            job is None
            and self._state_dir is not None
            and "/" not in job_id
            and job_id not in ("", ".", "..")
        ):
            directory = self._state_dir / job_id
            if exists(directory):
                return CheckpointReader(storage_at(directory))
        raise _no_state(job_id, list(known), exists=job is not None)


def _not_retained(view: str, checkpoint: int | None, manifests: list[Manifest]) -> PenstockError:
    """Return the error of a version that is not there, with those that are."""
    there = ", ".join(
        f"{manifest.checkpoint_id} ({datetime.fromtimestamp(manifest.created_at_ms / 1000, UTC):%F %T} UTC)"
        for manifest in manifests
    )
    what = "so old a checkpoint" if checkpoint is None else f"checkpoint {checkpoint}"
    more = "SET 'execution.checkpointing.num-retained' before the view is created keeps more"
    return PenstockError(
        "STA-3062",
        f"materialized view {view} has {what} no longer, or not yet",
        hint=f"there are: {there}; {more}"
        if there
        else "its first checkpoint is not complete: read it again",
        sqlstate="42704",
    )


def _list(lines: list[StateLine], manifest: Manifest) -> pa.Table:
    rows = {
        "operator": [line.operator for line in lines],
        "operator_id": [line.operator_id for line in lines],
        "state": [line.state for line in lines],
        "kind": ["keyed" if line.keyed else "list" for line in lines],
        "entries": [line.rows for line in lines],
        "size_bytes": [line.size_bytes for line in lines],
        "checkpoint": [manifest.checkpoint_id] * len(lines),
    }
    return pa.table(rows, schema=Schema(_LIST).to_arrow())


def _find(lines: list[StateLine], reference: StateReference) -> StateLine:
    """Return the one state that the reference names. Raise STA-3061 for none or several."""
    wanted = (reference.operator or "").lower()
    of_operator = [line for line in lines if wanted in (line.operator_id.lower(), line.operator.lower())]
    if not of_operator:
        names = list(dict.fromkeys(line.operator for line in lines))
        raise PenstockError(
            "STA-3061",
            f"there is no operator '{reference.operator}' with state",
            hint=did_you_mean(reference.operator or "", names, others=True) or "no operator has state",
            sqlstate="42704",
        )
    if len({line.operator_id for line in of_operator}) > 1:
        ids = ", ".join(dict.fromkeys(line.operator_id for line in of_operator))
        raise PenstockError(
            "STA-3061",
            f"several operators are named '{reference.operator}'",
            hint=f"write OPERATOR with one of their ids: {ids}",
            sqlstate="42702",
        )
    named = [line for line in of_operator if reference.state in (None, line.state)]
    if len(named) == 1:
        return named[0]
    states = [line.state for line in of_operator]
    what = f"no state '{reference.state}'" if not named else f"{len(named)} states"
    raise PenstockError(
        "STA-3061",
        f"operator '{reference.operator}' has {what}",
        hint=f"write STATE with one of: {', '.join(states)}",
        sqlstate="42704",
    )


def _no_state(job_id: str, known: list[str], *, exists: bool) -> PenstockError:
    if exists:
        return PenstockError(
            "STA-3061",
            f"job {job_id} writes no checkpoints, and its state is read out of them",
            hint="SET 'execution.checkpointing.dir' = 'path' before its INSERT",
            sqlstate="55000",
        )
    return PenstockError(
        "STA-3033",
        f"there is no job '{job_id}' with checkpoints",
        hint=did_you_mean(job_id, known, others=True) or "SHOW JOBS lists the jobs",
        sqlstate="42704",
    )
