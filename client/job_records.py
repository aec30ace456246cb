"""The jobs a state directory tells of, and running one on: its statements are said again in a fresh session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import PenstockError
from catalog.frozen import dataclass
from client.results import Result
from engine.job_record import JOB, JobRecord, decode_record, refuse_withheld
from engine.local_storage import LocalStorage

if TYPE_CHECKING:
    from client.session import Session


@dataclass(frozen=True)
class RecordedJob:
    """A job as its directory tells of it; ``alive``: a process is at work in it."""

    job_id: str
    record: JobRecord
    alive: bool
    finished: bool

    @property
    def status(self) -> str:
        """How it ended; RUNNING while its process lives, DIED when that is gone."""
        if self.finished:
            return "FINISHED"
        return ("RUNNING" if self.alive else "DIED") if self.record.status == "RUNNING" else self.record.status


def recorded_jobs(state_dir: Path) -> list[RecordedJob]:
    """Return the jobs of a state directory, by id. CLI-6035 when there is no such directory; STA-3005 for a damaged record."""
    if not state_dir.is_dir():
        raise PenstockError(
            "CLI-6035", f"there is no state directory {state_dir}", hint="--state takes what penstock run was given", sqlstate="58030"
        )
    found = []
    for path in sorted(state_dir.iterdir()):
        if (path / JOB).is_file():
            storage = LocalStorage(path)
            found.append(RecordedJob(path.name, decode_record(storage.read(JOB)), storage.in_use(), (path / "FINISHED").exists()))
    return found


def run_on(session: Session, job: RecordedJob) -> Result:
    """Say a job's statements again in a fresh session over its state directory; returns the result of its own. STA-3054 when they hold secrets."""
    record = job.record
    if record.withheld:
        raise refuse_withheld(job.job_id)
    for key, text in record.settings:
        if not session.settings.is_set(key):
            session.settings.set(key, text)
    session.settings.set("table.dml-sync", "false")
    for statement in record.statements:
        session.execute(statement)
    session.adopting = job.job_id
    return session.execute(record.statement)
