"""Savepoints: one checkpoint with all its files in a directory of its own. It belongs to the user: it can be
moved, and the engine never deletes it.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.locations import Location, ObjectUrl
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.checkpoint.reader import CheckpointReader
from penstock.engine.checkpoint.snapshot_format import BLOCK_BYTES, check_file
from penstock.engine.checkpoint.store import CheckpointStore, Opened
from penstock.engine.storage.locations import exists, remove, set_aside, storage_at
from penstock.engine.storage.storage import Storage

KIND = "savepoint"
_PARTIAL = ".partial"
"""How the name of a directory ends whose copy is not complete."""


def write_savepoint(
    storage: Storage, job_id: str, directory: Location, checkpoint_id: int | None = None
) -> Location:
    """Copy a checkpoint of a job, by default its current one, into a new directory under ``directory``;
    return its path. There is a whole savepoint at that path or none, whenever this process dies.

    Every byte is checked. Raises STA-3005 for damage, STA-3034 when the copy cannot be written.
    """
    manifest = CheckpointReader(storage).manifest(checkpoint_id)
    target = directory / f"savepoint-{job_id}-{manifest.checkpoint_id}"
    # A directory is renamed once it is whole. Objects are not renamed: there the copy is none without its
    # last object, the head.
    staged = target if isinstance(target, ObjectUrl) else directory / f".{target.name}{_PARTIAL}"
    try:
        # Never into an existing directory: it may be another savepoint.
        if exists(target):
            raise _not_written(target, "it exists already")
        try:
            # what a process left behind that was killed while it copied
            remove(staged)
            _fill(storage, manifest, staged, job_id)
            if staged != target:
                set_aside(staged, target)
                # the new name is durable before the user hears of it
                storage_at(directory).sync_directory()
        except BaseException:
            remove(staged)
            raise
    except OSError as error:
        raise _not_written(target, error.strerror or str(error)) from error
    return target


def _fill(storage: Storage, manifest: Manifest, place: Location, job_id: str) -> None:
    # A store of its own: a savepoint is a job directory with one checkpoint.
    store = CheckpointStore(storage_at(place), job_id)
    try:
        store.open()
        _copy(storage, manifest, store)
    finally:
        store.close()


def start_from(savepoint: Location, store: CheckpointStore, opened: Opened) -> Opened:
    """Copy a savepoint into a job's directory as its first checkpoint. A job that has checkpoints or has
    finished ignores it and resumes from its own.

    The savepoint is only read. Raises STA-3035 where there is none, STA-3005 for damage, STA-3006 for a newer
    format.
    """
    # the job has progressed beyond the savepoint: never go back
    if opened.latest is not None or opened.finished:
        return opened
    if not exists(savepoint):
        raise _no_savepoint(savepoint)
    source = storage_at(savepoint)
    reader = CheckpointReader(source)
    if not reader.is_job:
        raise _no_savepoint(savepoint)
    manifest = _copy(source, reader.manifest(), store)
    return Opened(manifest, False, manifest.checkpoint_id + 1)


def _copy(source: Storage, manifest: Manifest, store: CheckpointStore) -> Manifest:
    # Before the copy: damage must be reported as damage of the source.
    for file in manifest.files:
        check_file(source, file)
        store.storage.create(file.name)
        for begin in range(0, file.length, BLOCK_BYTES):
            store.storage.append(file.name, source.read(file.name, begin, BLOCK_BYTES))
        store.storage.sync(file.name)
        # read the copy back, since writing may have damaged it
        check_file(store.storage, file)
    # Last, as for any checkpoint: until then the directory has no CURRENT.
    return store.publish(replace(manifest, job_id=store.job_id, kind=KIND))


def _not_written(target: Location, why: str) -> PenstockError:
    hint = "the checkpoint of the job is complete, and the job can resume from it; give another target"
    return PenstockError(
        "STA-3034",
        f"the savepoint cannot be written to {target}: {why}",
        hint=hint,
        kind=Kind.EXTERNAL,
        sqlstate="58030",
    )


def _no_savepoint(path: Location) -> PenstockError:
    hint = "CREATE SAVEPOINT and STOP JOB .. WITH SAVEPOINT print the directory they made"
    return PenstockError("STA-3035", f"there is no savepoint in {path}", hint=hint, sqlstate="42704")
