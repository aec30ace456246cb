"""The jobs that a state directory records."""

from __future__ import annotations

import re
from collections.abc import Collection

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.job_options import JobRecord
from penstock.engine.api.locations import Location
from penstock.engine.checkpoint.job_directory import (
    JOB,
    decode_record,
    recorded_name,
)
from penstock.engine.checkpoint.manifest import OperatorRole
from penstock.engine.checkpoint.reader import CheckpointReader
from penstock.engine.checkpoint.store import CURRENT, FINISHED
from penstock.engine.storage.locations import exists, folders_in, has_file, storage_at
from penstock.engine.storage.storage import directory_name

ZONE, ZONE_DEFAULT = "table.local-time-zone", "UTC"


@dataclass(frozen=True)
class RecordedJob:
    """A job as its directory records it; ``alive``: a process works in it."""

    job_id: str
    record: JobRecord
    alive: bool
    finished: bool

    @property
    def status(self) -> str:
        """How it ended; RUNNING while its process runs, DIED when the process is gone."""
        if self.finished:
            return "FINISHED"
        return (
            # a killed process leaves RUNNING in its record; only the lock of the directory shows that it died
            ("RUNNING" if self.alive else "DIED") if self.record.status == "RUNNING" else self.record.status
        )


def recorded_jobs(state_dir: Location) -> list[RecordedJob]:
    """Return the jobs of a state directory, by id. CLI-6035 when there is no such directory; STA-3005 for
    a damaged record.
    """
    if not exists(state_dir):
        raise PenstockError(
            "CLI-6035",
            f"there is no state directory {state_dir}",
            hint="--state takes the --state directory of penstock run",
            sqlstate="58030",
        )
    jobs = []
    for path in folders_in(state_dir):
        storage = storage_at(path)
        names = storage.list()
        # other directories and files may be beside those of jobs
        if JOB in names:
            jobs.append(
                RecordedJob(
                    path.name,
                    decode_record(storage.read(JOB)),
                    storage.in_use(),
                    FINISHED in names,
                )
            )
    return jobs


def job_id_of(state_dir: Location, name: str, number: int) -> str:
    """Return the id, and so the directory, of the ``number``-th job of a name. A directory that an early
    version named otherwise is recognized by the name it records. One without a record belongs to the first
    job that asks for it.
    """
    job_id = f"{directory_name(name)}-{number}"
    # the directory's name in early versions: other characters were replaced, and no hash was appended
    early = f"{(re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('-.') or 'job')[:80]}-{number}"
    # a directory of the present name has precedence over an early one
    if early == job_id or exists(state_dir / job_id) or not exists(state_dir / early):
        return job_id
    return early if recorded_name(storage_at(state_dir / early).read) in ("", name) else job_id


def unfinished_writers(
    state_dir: Location, job_id: str, name: str, tables: Collection[str]
) -> tuple[str, ...]:
    """Return a note for each unfinished job of the directory that has written to the tables of a job
    without state. The job does not resume from their states.
    """
    # the job resumes from its own state: nothing begins anew
    if has_file(state_dir / job_id, CURRENT):
        return ()
    notes = []
    for job in recorded_jobs(state_dir):
        if (
            # a job that runs or has ended, or whose state was dropped, has left no output unfinished
            job.job_id == job_id
            or job.status in ("RUNNING", "FINISHED", "CANCELED")
            or ".dropped-" in job.job_id
        ):
            continue
        try:
            operators = CheckpointReader(storage_at(state_dir / job.job_id)).manifest().operators
        except PenstockError:  # it has no checkpoint to resume from
            continue
        shared = ", ".join(o.place for o in operators if o.role is OperatorRole.SINK and o.place in tables)
        if shared:
            own = (
                f"the statement resumes from its state as the {job.job_id.rpartition('-')[2]}. of that "
                "name in another session"
            )
            # of the same name: only its number differs; else the user must set the name to find it
            way = (
                own
                if job.record.name == name
                else f"to resume from its state SET 'pipeline.name' = '{job.record.name}'"
            )
            notes.append(f"begins anew; job {job.job_id} has written to {shared} and has not finished: {way}")
    return tuple(notes)


def changed_zone(state_dir: Location, job_id: str, zone: str) -> tuple[str, ...]:
    """Return a note for a job that resumes in another time zone than it ran in: its state keeps what it has
    computed in that one.
    """
    directory = state_dir / job_id
    if not has_file(directory, CURRENT) or not has_file(directory, JOB):
        return ()
    settings = dict(decode_record(storage_at(directory).read(JOB)).settings)
    before = settings.get(ZONE, ZONE_DEFAULT)
    if before == zone:
        return ()
    return (
        f"resumes in the time zone {zone}; until now it was {before}, and dates and texts of times in its "
        f"state are of that zone: SET '{ZONE}' = '{before}' continues as before",
    )
