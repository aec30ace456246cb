"""State as a table: which state of which job or savepoint a query reads, and who knows its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field

STATE = "state"
"""The connector that reads states."""


@dataclass(frozen=True)
class StateReference:
    """``STATE OF JOB 'job' [CHECKPOINT checkpoint]`` or ``STATE OF SAVEPOINT 'savepoint'``, then
    ``[OPERATOR 'operator' [STATE 'state']]``. Without an operator it is the list of all states.

    ``checkpoint``: None is the newest completed one. ``operator`` is a name or an id.
    """

    job: str | None = None
    savepoint: str | None = None
    checkpoint: int | None = None
    operator: str | None = None
    state: str | None = None

    def options(self) -> dict[str, str]:
        """Return the options of the table that reads this state."""
        parts = {
            "job": self.job,
            "savepoint": self.savepoint,
            "checkpoint": None if self.checkpoint is None else str(self.checkpoint),
            "operator": self.operator,
            "state": self.state,
        }
        return {"connector": STATE, **{key: text for key, text in parts.items() if text is not None}}


def state_reference(options: Mapping[str, str]) -> StateReference:
    """Return the reference that ``StateReference.options`` wrote."""
    number = options.get("checkpoint")
    return StateReference(
        options.get("job"),
        options.get("savepoint"),
        None if number is None else int(number),
        options.get("operator"),
        options.get("state"),
    )


@dataclass(frozen=True)
class StateColumns:
    """The columns of a state, and the reference with everything decided: the checkpoint, the operator's id
    and the name of the state.
    """

    fields: tuple[Field, ...]
    reference: StateReference


class StateLookup(Protocol):
    """Finds states and their columns. The catalog carries it, as it knows no jobs itself."""

    def state_columns(self, reference: StateReference) -> StateColumns:
        """Return the columns of a state. Raises STA-3xxx where there is none."""

    def view_rows(self, view: str, checkpoint: int | None, until_us: int | None) -> StateReference | None:
        """Return the state that has the rows of a materialized view at a checkpoint, by its number or the
        newest one until a time; None for no rows. Raises STA-3062 for a checkpoint that is not there.
        """

    def rows_read(self, view: str) -> Mapping[str, list[tuple[str, int]]]:
        """Return what the job of a materialized view has read at its newest checkpoint, by table: the path
        of each file and the number of its rows, or ``topic-partition`` and the next offset. Nothing where the
        job writes no checkpoints.
        """


class NoStates:
    """Refuses every state: a catalog by itself has no jobs."""

    def state_columns(self, reference: StateReference) -> StateColumns:
        """Raise STA-3060."""
        raise _no_session()

    def view_rows(self, view: str, checkpoint: int | None, until_us: int | None) -> StateReference | None:
        """Raise STA-3060."""
        raise _no_session()

    def rows_read(self, view: str) -> Mapping[str, list[tuple[str, int]]]:
        """Raise STA-3060."""
        raise _no_session()


def _no_session() -> PenstockError:
    return PenstockError(
        "STA-3060", "this catalog reads no states of jobs", hint="read them in a session that runs jobs"
    )
