"""Failpoints: named steps of the checkpoint protocol at which tests make a process die, fail or wait. An
unarmed point does nothing.

A point is passed once per checkpoint, barrier, commit or restore, never per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean

POINTS: dict[str, str] = {
    # The coordinator.
    "C1": "a checkpoint is due, nothing of it recorded",
    "C2": "the checkpoint is recorded, no source notified",
    "C3": "some sources are notified",
    "C4": "some tasks' parts are written",
    "C5": "all parts are written, the manifest not begun",
    "C6": "half of the manifest is written",
    "C7": "the manifest is written, not synced",
    "C8": "the manifest is synced, not renamed",
    "C9": "the manifest is renamed, its directory not synced",
    "C10": "the manifest is durable, CURRENT still names the one before",
    "C11": "CURRENT names the checkpoint, nobody is notified",
    "C12": "some tasks are notified that the checkpoint is complete",
    "C13": "a checkpoint is aborted because it takes too long",
    "C14": "a checkpoint is due while sinks still commit the one before",
    # The tasks.
    "W1": "a source is asked to begin a checkpoint",
    "W2": "a source's positions are snapshotted, its barrier not sent",
    "W3": "the barrier is sent on some outputs",
    "W4": "the first of several barriers has come",
    "W5": "all barriers have come, the snapshot not begun",
    "W6": "the snapshot is taken, the barrier not forwarded",
    "W7": "half of a part is written",
    "W8": "a part is written, not synced",
    "W9": "a part is durable, the coordinator not notified",
    "W10": "the coordinator is notified of a part",
    "W11": "half of the rows in flight are written",
    "W12": "a task has ended",
    # Sinks.
    "S1": "a sink is asked to prepare",
    "S2": "a sink's rows are staged, not synced",
    "S3": "a sink has prepared, its task has not reported it",
    "S4": "a sink is asked to commit",
    "S5": "a sink has committed some of its items",
    "S6": "a sink has committed, the reply is lost",
    "S7": "a sink has written down that it committed",
    "K1": "a Kafka sink has sent an epoch's rows, not its number",
    "K2": "a Kafka sink has sent an epoch's rows and number, not committed them",
    "K3": "a Kafka sink has committed an epoch, and has not noted it",
    "L1": "a lakehouse sink has read which epochs the table has, nothing is written",
    "L2": "a version of a lakehouse table has an epoch's rows, and the sink has not noted it",
    # Old checkpoints.
    "G1": "old checkpoints are to be deleted",
    "G2": "some files of old checkpoints are deleted",
    "G3": "a file that checkpoints shared is to be deleted",
    # Restoring.
    "R1": "a checkpoint is read to be restored",
    "R2": "state is restored, pending commits not repeated",
    "R2b": "pending commits are repeated, nothing else begun",
}

Action = Callable[[str], None]
# of the whole process: a failpoint is reached from any thread
_armed: Mapping[str, Action] | None = None


def failpoint(name: str) -> None:
    """Do what a test has armed at this point; otherwise nothing."""
    if _armed is not None and name in _armed:
        _armed[name](name)


def is_armed(name: str) -> bool:
    """Whether a test waits for this point: for steps that are taken in one piece otherwise."""
    return _armed is not None and name in _armed


def check_point(name: str) -> str:
    """Return the name of a failpoint; raise CLI-6150 with the nearest one for a name that is none."""
    if name not in POINTS:
        raise PenstockError(
            "CLI-6150",
            f"there is no failpoint {name[:40]}",
            hint=did_you_mean(name, POINTS) or f"there are {', '.join(POINTS)}",
        )
    return name


def arm(actions: Mapping[str, Action]) -> None:
    """Have each named point do its action, called with the point's name, from now on; an empty mapping
    disarms all. CLI-6150 for an unknown name.
    """
    global _armed
    # None, not an empty mapping: an unarmed failpoint costs one comparison
    _armed = {check_point(name): action for name, action in actions.items()} or None


@contextmanager
def armed(actions: Mapping[str, Action]) -> Iterator[None]:
    """Arm points for a while."""
    before = _armed
    arm(actions)
    try:
        yield
    finally:
        arm(before or {})
