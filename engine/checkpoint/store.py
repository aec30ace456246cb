"""The checkpoints of one job on storage: publishing, finding the newest one, garbage collection, and fencing
of writers.

Order of a publish: segments synced, directory synced, manifest written, synced and renamed, then CURRENT
likewise. Only after that is the checkpoint reported. No durable file is ever rewritten: names carry epoch,
attempt and checkpoint.

A new epoch first publishes itself, then deletes the staged files of older ones, and only then reads the
current checkpoint. A writer stages, checks the epoch, and renames. So an older writer, wherever it was
interrupted, has renamed before the new one reads, or finds nothing left to rename.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.failpoints import failpoint, is_armed
from penstock.engine.api.job_options import SUSPENDED, JobRecord
from penstock.engine.checkpoint.job_directory import (
    JOB,
    OWNER,
    JobOwner,
    decode_owner,
    encode_owner,
    encode_record,
    recorded_name,
)
from penstock.engine.checkpoint.manifest import (
    FORMAT,
    VERSION,
    Manifest,
    check_version,
    decode_manifest,
    encode_manifest,
    unseal,
)
from penstock.engine.checkpoint.snapshot_format import WrittenTask, check_file, damaged
from penstock.engine.checkpoint.snapshot_writer import SnapshotWriter
from penstock.engine.storage.sealed_json import seal
from penstock.engine.storage.storage import Storage, locked
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot

CURRENT = "CURRENT"
FINISHED = "FINISHED"
# Names of files; each group is a number: the checkpoint or the epoch.
_MANIFEST = re.compile(r"chk-(\d+)\.manifest\.json")
_SEGMENT = re.compile(r"seg-e\d+-a\d+-c(\d+)-t\d+\.\d+")
_EPOCH = re.compile(r"epoch-(\d+)")
# A staged file carries the epoch of its writer, so that a newer one can delete it.
_STAGED = re.compile(r"(?:chk-\d+\.manifest|CURRENT|FINISHED|JOB|OWNER)\.e(\d+)\.tmp")


@dataclass(frozen=True)
class Opened:
    """The contents of a state directory when it was opened: the checkpoint to restore, whether the job had
    finished, and the next free checkpoint id.
    """

    latest: Manifest | None
    finished: bool
    next_checkpoint_id: int


class CheckpointStore:
    """Reads and writes the checkpoints of one job. One writer at a time: older ones are fenced off by epoch.

    ``fallback``: when the newest checkpoint is damaged, restore the newest intact one; ``fell_back`` is then
    the text of the event. ``view``: maps the newest manifest for a job whose query has changed. ``suspends``:
    the process ends and not the job, so that its record says that another process resumes it.
    """

    def __init__(self, storage: Storage, job_id: str, retained: int = 2, *, fallback: bool = False) -> None:
        self.storage = storage
        self.fell_back: str | None = None
        # Off by default: later output may be committed already.
        self._fallback = fallback
        self.job_id = job_id
        self.epoch = 0
        self.owner = job_id
        # The current one, and one to fall back to.
        self._retained = max(2, retained)
        # By retained checkpoint: the files it needs.
        self._manifests: dict[int, frozenset[str]] = {}
        # Checkpoints that a savepoint is being copied from.
        self._pinned: set[int] = set()
        self._current: int | None = None
        self._writer: SnapshotWriter | None = None
        self.view: Callable[[Manifest], Manifest] = lambda manifest: manifest
        self._record: JobRecord | None = None
        self.suspends = False

    def open(self, *, take_over: bool = False) -> Opened:
        """Lock the directory, claim the next epoch, read the newest checkpoint, and remove unreferenced files
        of earlier runs.

        ``take_over``: fence off another process that runs the job. Raises STA-3001 when one does, STA-3005
        for damaged files, STA-3006 for a newer format, STA-3010 for another job's files.
        """
        self.storage.lock(take_over=take_over)
        # CURRENT before the epoch is claimed; compared below to detect a rename in between
        current = self._current_bytes()
        latest = self.latest()
        names = self.storage.list()
        if FINISHED in names:
            check_version(FINISHED, unseal(FINISHED, self.storage.read(FINISHED)))
        epochs = _numbers(_EPOCH, names)
        # Also above the manifest's epoch, whose file may be gone.
        self._begin_epoch(max([0, *epochs, latest.epoch if latest else 0]) + 1)
        # only now: our own epoch file already fences the older writers off
        for epoch in epochs:
            self.storage.delete(f"epoch-{epoch}")
        if self._current_bytes() != current:  # an older writer has renamed before us; no other can any more
            latest = self.latest()
        # Listed again: what the older writer has published is among them.
        names = self.storage.list()
        numbers = _numbers(_MANIFEST, names)
        self._current = latest.checkpoint_id if latest else None
        # Only up to the restored one: CURRENT never named the later manifests, or they are damaged.
        self._know_manifests(
            [number for number in numbers if latest is not None and number <= latest.checkpoint_id]
        )
        if self.fell_back is None:  # else the damaged files stay until a newer checkpoint is durable
            self._collect_garbage(above_too=True)
        return Opened(latest, FINISHED in names, max([0, *numbers]) + 1)

    def _begin_epoch(self, epoch: int) -> None:
        """Publish the epoch, then fence off older ones: their staged files are deleted, and files they stage
        later are refused.

        The lock is asked for before and after: whoever lost it since must not pass for the newest writer.
        """
        if not self.storage.renew(now=True):
            raise locked(str(self.storage))
        try:
            self.storage.create(f"epoch-{epoch}")
            self.storage.sync(f"epoch-{epoch}")
        except FileExistsError as cause:  # another process opens it at the same moment
            # creating the file is exclusive: only one process gets each epoch
            raise locked(str(self.storage)) from cause
        self.storage.sync_directory()
        if not self.storage.renew(now=True):
            self.storage.delete(f"epoch-{epoch}")
            raise locked(str(self.storage))
        self.epoch = epoch
        self._fence_older()

    def _fence_older(self) -> None:
        for name in self.storage.list():
            # The older writer finds nothing to rename, and then checks the epoch.
            if (staged := _STAGED.fullmatch(name)) and int(staged[1]) < self.epoch:
                self.storage.delete(name)

    def _current_bytes(self) -> bytes | None:
        return self.storage.read(CURRENT) if CURRENT in self.storage.list() else None

    def latest(self) -> Manifest | None:
        """Return the checkpoint that CURRENT names, or ``None``. Every byte of it and of its files is
        checked.

        The directory is synced first: an earlier publish may have failed after the rename, and sinks commit
        what is restored. Everything is checked before anything is used. Otherwise a restored task could emit
        rows before another detects that its part is damaged.
        """
        self.storage.sync_directory()
        names = self.storage.list()
        if CURRENT not in names:
            self._refuse_lost(names)
            return None
        name = CURRENT
        try:
            fields = unseal(CURRENT, self.storage.read(CURRENT))
            check_version(CURRENT, fields)
            name = str(fields.get("manifest"))
            return self.view(self._intact(name, int(fields.get("length", -1))))
        except PenstockError as error:
            # Only damage may be worked around; a newer format or another job's files may not.
            if error.code != "STA-3005":
                raise
            intact = self._newest_intact(name)
            if self._fallback and intact is not None:
                self.fell_back = (
                    f"to checkpoint {intact.checkpoint_id}, for {error.message}: {error.detail}; output "
                    "committed since may come again"
                )
                return self.view(intact)
            error.hint = error.hint or _alternative(intact)
            raise

    def write_task(
        self, attempt: int, checkpoint_id: int, task: TaskId, operators: Sequence[OperatorSnapshot]
    ) -> WrittenTask:
        """Write and sync one task's part of a checkpoint. Raises OSError, and then removes the file if it
        can.
        """
        # A deployment's tasks start without bases, so it gets a writer of its own.
        if self._writer is None or self._writer.attempt != attempt:
            self._writer = SnapshotWriter(self.storage, self.epoch, attempt)
        return self._writer.write(checkpoint_id, task, operators)

    def publish(self, manifest: Manifest) -> Manifest:
        """Make a checkpoint of written parts durable and current; returns the published manifest.

        Raises OSError, or STA-3002 when a newer epoch has taken over.
        """
        manifest = replace(manifest, epoch=self.epoch, parent=self._current)
        name = f"chk-{manifest.checkpoint_id}.manifest.json"
        data = encode_manifest(manifest)
        self._may_publish()
        # The names of the segments first: a durable manifest must find them.
        self.storage.sync_directory()
        self._check_files(manifest)
        # the manifest first: CURRENT must never name a file that does not exist
        self._publish(f"chk-{manifest.checkpoint_id}.manifest", name, data)
        fields = {
            "manifest": name,
            "length": len(data),
            "epoch": self.epoch,
            "checkpoint_id": manifest.checkpoint_id,
        }
        failpoint("C10")
        # As late as possible before the rename; the rename itself finds no staged file once a newer epoch has
        # begun.
        self._may_publish()
        self._publish(
            CURRENT,
            CURRENT,
            seal({"format": FORMAT, "version": list(VERSION), "job_id": self.job_id, **fields}),
        )
        failpoint("C11")
        # Overtaken right after the rename: the checkpoint is not reported, so no sink commits it here.
        self._may_publish()
        self._current = manifest.checkpoint_id
        self._manifests[manifest.checkpoint_id] = frozenset(file.name for file in manifest.files)
        return manifest

    def retire(self) -> None:
        """Delete checkpoints beyond the retained ones, and the files that only those need. Raises OSError,
        STA-3002.
        """
        failpoint("G1")
        self._collect_garbage(above_too=False)

    def pin(self, checkpoint_id: int) -> None:
        """Retain a checkpoint, also one that is not published yet, until ``unpin``."""
        self._pinned.add(checkpoint_id)

    def unpin(self, checkpoint_id: int) -> None:
        """Retain a checkpoint no longer than others; any thread may call it."""
        self._pinned.discard(checkpoint_id)

    def record_finished(self, checkpoint_id: int) -> None:
        """Record that the job has finished with this checkpoint, so that running it again does nothing.
        Raises OSError, STA-3002.
        """
        self._may_publish()
        fields = {
            "format": FORMAT,
            "version": list(VERSION),
            "job_id": self.job_id,
            "checkpoint_id": checkpoint_id,
        }
        self._publish(FINISHED, FINISHED, seal(fields))

    def check_job_name(self, name: str) -> None:
        """Refuse the state of a job of another name: STA-3012. A record without a name matches any job."""
        recorded = recorded_name(self.storage.read)
        if recorded not in ("", name):
            message = f"the state in {self.storage} is that of job '{recorded}', not of '{name}'"
            hint = (
                "give this job another name: SET 'pipeline.name' = '..', or another state directory; "
                "penstock jobs --state DIR lists what is there"
            )
            raise PenstockError("STA-3012", message, hint=hint, sqlstate="55000")

    def own(self, drawn: str, name: str = "") -> str:
        """Return the owner id of the job's sinks: the one in this directory, else ``drawn``, which is then
        written.

        A copied directory gets ``drawn``, since the original job may be running. So does a directory whose
        owner file is damaged. Output staged under the old id is published if a checkpoint lists it, and never
        deleted. A directory without an owner file may be of an early version with open permissions; it is
        closed to other users, once. Raises OSError, STA-3002.
        """
        location = self.storage.location()
        # Without an owner file, or with a damaged one, the job gets a new id.
        with contextlib.suppress(FileNotFoundError, PenstockError):
            recorded = decode_owner(self.storage.read(OWNER))
            # the directory was neither copied nor moved since the owner was written
            if recorded.place == location:
                self.owner = recorded.owner
                return recorded.owner
        # In memory before it is durable: if writing fails, the job does not start.
        self.owner = drawn
        self.storage.shut()
        self._may_publish()
        self._publish(OWNER, OWNER, encode_owner(self.job_id, JobOwner(drawn, location, name)))
        return drawn

    def record_job(self, record: JobRecord) -> None:
        """Write the job record, so that another process can run the job. Raises OSError, STA-3002."""
        self._record = replace(record, epoch=self.epoch)
        self._may_publish()
        self._publish(JOB, JOB, encode_record(self.job_id, self._record))

    def renew(self) -> None:
        """Renew the lock. Raises STA-3002 when another process has taken over the job."""
        # Another process holds the lock now. Its epoch tells whether it has begun to write.
        if not self.storage.renew():
            self._check_epoch()

    def check_owner(self) -> None:
        """Raise STA-3002 when another process has begun to write for the job, asked of the storage now."""
        self.storage.renew(now=True)
        self._check_epoch()

    def close(self, ended: str | None = None) -> None:
        """Record how the job ``ended``, and release the lock."""
        if ended is not None and self._record is not None:
            # FINISHED without its marker is a stop: the job can be resumed.
            status = "STOPPED" if ended == "FINISHED" and FINISHED not in self.storage.list() else ended
            if self.suspends and status in ("STOPPED", "CANCELED"):
                status = SUSPENDED
            # the job then counts as one whose process died, and ends the same when it is run again
            with contextlib.suppress(OSError, PenstockError):
                self.record_job(self._record.ended(status))
        self.storage.close()

    def _publish(self, stem: str, target: str, data: bytes) -> None:
        staged = f"{stem}.e{self.epoch}.tmp"
        # a failed publish may have left it
        self.storage.delete(staged)
        try:
            self._stage(staged, data)
            # A newer epoch that began before this check is noticed here; one that begins later deletes the
            # staged file, unless the rename comes first.
            self._may_publish()
            self.storage.publish(staged, target)
        except FileNotFoundError:  # a newer epoch has deleted it since we looked
            self._check_epoch()
            raise
        except OSError:
            # report the first failure; on a full disk the space is needed
            with contextlib.suppress(OSError):
                self.storage.delete(staged)
            raise

    def _stage(self, staged: str, data: bytes) -> None:
        self.storage.create(staged)
        # failpoint C6 interrupts a manifest half written
        written = len(data) // 2 if is_armed("C6") else 0
        if written:
            self.storage.append(staged, data[:written])
            failpoint("C6")
        self.storage.append(staged, data[written:])
        failpoint("C7")
        self.storage.sync(staged)
        failpoint("C8")

    def _check_files(self, manifest: Manifest) -> None:
        """A checkpoint may be published only while all files it shares with earlier ones exist."""
        missing = sorted({file.name for file in manifest.files} - set(self.storage.list()))
        if missing:
            raise FileNotFoundError(
                f"{missing[0]}, which checkpoint {manifest.checkpoint_id} shares with an earlier one, is gone"
            )

    def _may_publish(self) -> None:
        """Refuse to publish for a stale writer, unless the storage does so itself: there a look at all names
        is a request each time.
        """
        if not self.storage.fences:
            self._check_epoch()

    def _check_epoch(self, names: Sequence[str] | None = None) -> None:
        newest = max(_numbers(_EPOCH, self.storage.list() if names is None else names), default=0)
        # Equal or lower: this writer is the newest.
        if newest > self.epoch:
            message = f"this run of job {self.job_id} (epoch {self.epoch}) is superseded by epoch {newest}"
            raise PenstockError(
                "STA-3002",
                message,
                hint="another process has taken the job over",
                kind=Kind.EXTERNAL,
                sqlstate="55006",
            )

    def _manifest(self, name: str, length: int | None = None) -> Manifest:
        """Read and check one manifest and the lengths of its files."""
        # It becomes a path: only a manifest's name is allowed.
        if _MANIFEST.fullmatch(name) is None:
            raise damaged(CURRENT, f"it names {name[:80]!r}")
        try:
            data = self.storage.read(name)
        # CURRENT names it, so it was durable once.
        except FileNotFoundError as cause:
            raise damaged(name, "the file is gone") from cause
        if length is not None and len(data) != length:
            raise damaged(name, f"{len(data)} bytes, expected {length}")
        manifest = decode_manifest(name, data)
        # A directory that was renamed or copied over another one.
        if manifest.job_id != self.job_id:
            message = f"the state directory belongs to job {manifest.job_id}, not to {self.job_id}"
            hint = "give this job another name: SET 'pipeline.name' = '..', or another state directory"
            raise PenstockError("STA-3010", message, hint=hint, kind=Kind.USER, sqlstate="55000")
        # Lengths only: cheap enough for all retained checkpoints.
        for file in manifest.files:
            try:
                size = self.storage.size(file.name)
            except FileNotFoundError as cause:
                raise damaged(
                    file.name, f"the file is gone; checkpoint {manifest.checkpoint_id} needs it"
                ) from cause
            if size != file.length:
                raise damaged(file.name, f"{size} bytes, expected {file.length}")
        return manifest

    def _refuse_lost(self, names: Sequence[str]) -> None:
        """Refuse a directory that has lost CURRENT. Without CURRENT it may contain only a first checkpoint,
        half published; a later one had a CURRENT before it.
        """
        followers = [
            n
            for n in _numbers(_MANIFEST, names)
            if self._manifest(f"chk-{n}.manifest.json").parent is not None
        ]
        # more than a first checkpoint was published here, so CURRENT existed and was lost
        if followers or FINISHED in names:
            raise damaged(CURRENT, "the file is gone", _alternative(self._newest_intact(CURRENT)))

    def _intact(self, name: str, length: int | None = None) -> Manifest:
        """Read one manifest and check it and all its files to the last byte."""
        manifest = self._manifest(name, length)
        for file in manifest.files:
            check_file(self.storage, file)
        return manifest

    def _newest_intact(self, broken: str) -> Manifest | None:
        """Return the newest other checkpoint that is intact."""
        for number in sorted(_numbers(_MANIFEST, self.storage.list()), reverse=True):
            name = f"chk-{number}.manifest.json"
            if name != broken:
                with contextlib.suppress(PenstockError):
                    return self._intact(name)
        return None

    def _know_manifests(self, numbers: Sequence[int]) -> None:
        """Read which files the retained checkpoints need. A damaged older one is not retained, so its files
        become garbage.
        """
        for number in sorted(numbers)[-self._retained :]:
            try:
                manifest = self._manifest(f"chk-{number}.manifest.json")
            except PenstockError:
                # the current checkpoint must be readable; older ones are only a fallback
                if number == self._current:
                    raise
                continue
            self._manifests[number] = frozenset(file.name for file in manifest.files)

    def _collect_garbage(self, *, above_too: bool) -> None:
        """Delete files that no retained checkpoint references; ``above_too``: also those of checkpoints after
        the current one.

        Manifests are deleted first, durably: so a manifest that exists has all its files. An interrupted
        collection is completed by the next one. While a job runs, segments above the current checkpoint
        belong to the next one and are not deleted.
        """
        # the set changes on other threads: it is copied at one moment
        pinned = self._manifests.keys() & tuple(self._pinned)
        retained_now = sorted({*sorted(self._manifests)[-self._retained :], *pinned})
        self._manifests = {number: self._manifests[number] for number in retained_now}
        # Segments that some retained checkpoint shares.
        reachable = {name for files in self._manifests.values() for name in files}
        # segments of checkpoints above the horizon may belong to a checkpoint in progress
        horizon = float("inf") if above_too else (self._current or 0)
        names = self.storage.list()
        self._check_epoch(
            names
        )  # the list was read before the epoch check: nothing in it belongs to a newer epoch
        manifests = [
            n
            for n in names
            if (m := _MANIFEST.fullmatch(n)) and int(m[1]) not in retained_now and int(m[1]) <= horizon
        ]
        segments = [
            n for n in names if (m := _SEGMENT.fullmatch(n)) and n not in reachable and int(m[1]) <= horizon
        ]
        for name in manifests:
            self.storage.delete(name)
        if manifests:
            # Durable before any segment goes: no manifest may survive without its files.
            self.storage.sync_directory()
        if segments:
            failpoint("G3")
        for name in segments:
            self.storage.delete(name)
            failpoint("G2")


def _alternative(intact: Manifest | None) -> str:
    """Return a hint that names the newest other checkpoint that is intact."""
    if intact is None:
        return (
            "no other checkpoint is intact; restore the file from a backup, or remove the job's "
            "directory to start over"
        )
    name = f"checkpoint {intact.checkpoint_id} (chk-{intact.checkpoint_id}.manifest.json)"
    setting = "SET 'execution.state-recovery.fallback' = 'true' goes back to it"
    return (
        f"{name} is intact; it is not used unasked because later output may already be committed: {setting}"
    )


def _numbers(pattern: re.Pattern[str], names: Sequence[str]) -> list[int]:
    return [int(match[1]) for name in names if (match := pattern.fullmatch(name))]
