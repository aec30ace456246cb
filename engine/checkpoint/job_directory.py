"""The files of a job's directory beside its checkpoints: the job record and the owner id of its sinks.
Another process needs the record to run the job.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.job_options import JobRecord
from penstock.engine.checkpoint.manifest import FORMAT, VERSION, check_version, unseal
from penstock.engine.checkpoint.snapshot_format import damaged
from penstock.engine.storage.sealed_json import seal

# The names of the two files.
JOB = "JOB"
OWNER = "OWNER"


def encode_record(job_id: str, record: JobRecord) -> bytes:
    """Return the bytes of a record."""
    return seal(
        {
            # format, version: as in a manifest. Then the record's fields under their own names.
            "format": FORMAT,
            "version": list(VERSION),
            "job_id": job_id,
            "name": record.name,
            "statements": list(record.statements),
            "statement": record.statement,
            "settings": dict(record.settings),
            "started_at_ms": record.started_at_ms,
            "epoch": record.epoch,
            "status": record.status,
            "withheld": record.withheld,
        }
    )


def decode_record(data: bytes) -> JobRecord:
    """Return the record of sealed bytes; raises STA-3005 when damaged, STA-3006 for a newer format."""
    fields = unseal(JOB, data)
    check_version(JOB, fields)
    try:
        return JobRecord(
            name=str(fields["name"]),
            statements=tuple(map(str, fields["statements"])),
            statement=str(fields["statement"]),
            settings=tuple((str(key), str(value)) for key, value in fields["settings"].items()),
            started_at_ms=int(fields["started_at_ms"]),
            epoch=int(fields["epoch"]),
            status=str(fields["status"]),
            withheld=bool(fields["withheld"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        raise damaged(JOB, f"a field is missing or of the wrong kind: {cause}") from cause


@dataclass(frozen=True)
class JobOwner:
    """The owner id under which a job's sinks stage. ``place``: the directory it was written in, by which a
    copy is recognised. ``name``: the job's name.
    """

    owner: str
    place: str
    name: str


# place: where the directory was when the id was written. Older files have no name.
def encode_owner(job_id: str, owner: JobOwner) -> bytes:
    """Return the bytes of an owner file."""
    fields = {"owner": owner.owner, "place": owner.place, "name": owner.name}
    return seal({"format": FORMAT, "version": list(VERSION), "job_id": job_id, **fields})


def decode_owner(data: bytes) -> JobOwner:
    """Return the owner of sealed bytes; raises STA-3005 when damaged."""
    fields = unseal(OWNER, data)
    try:
        return JobOwner(str(fields["owner"]), str(fields["place"]), str(fields.get("name", "")))
    except KeyError as cause:
        raise damaged(OWNER, f"a field is missing: {cause}") from cause


def recorded_name(read: Callable[[str], bytes]) -> str:
    """Return the name of the job of a directory, "" when no readable file names it. ``read`` returns the
    bytes of one of its files.
    """
    # The owner file first: not every job has a record.
    with contextlib.suppress(FileNotFoundError, PenstockError):
        if name := decode_owner(read(OWNER)).name:
            return name
    with contextlib.suppress(FileNotFoundError, PenstockError):
        return decode_record(read(JOB)).name
    return ""


def refuse_withheld(job_id: str) -> PenstockError:
    """Return the error for a job whose statements contain secrets."""
    message = f"the statements of job {job_id} contain secrets, which are not stored with its state"
    return PenstockError(
        "STA-3054", message, hint="run the script it was started by, with the same --state", sqlstate="55000"
    )
