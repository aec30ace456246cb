"""Migration: whether what an operator kept can go on in the types of another plan, and how; else why not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.checkpoint.manifest import Manifest, Migration, OperatorRole
from penstock.engine.checkpoint.plan_identity import PlanIdentity
from penstock.planner.expressions.type_widening import crosses_words, keeps_layout
from penstock.planner.physical.state_compatibility import CarriedColumn, DeclaredTable

_SUMS = re.compile(r"\ba\d+_\d+ ")


@dataclass(frozen=True)
class Obstacle:
    """Why state cannot go on."""

    said: str


class Migrations:
    """Compares the operators of a checkpoint with those of a plan that mean the same but for the width of
    types and for columns carried along.
    """

    def __init__(self, manifest: Manifest, plan: PlanIdentity) -> None:
        self._manifest, self._plan = manifest, plan
        self._old, self._new = manifest.meaning, plan.meaning
        self._was = {table.key: table for table in self._old.tables}
        self._is = {table.key: table for table in self._new.tables}
        self._fingerprints: dict[str, list[str]] = {}
        for part in (part for task in manifest.tasks for part in task.keyed):
            self._fingerprints.setdefault(part.operator_id, []).append(part.fingerprint)

    def alike(self, one: str, other: str) -> bool:
        """Return whether two operators, the former and the new one, mean the same whatever the width of
        types.
        """
        old, new = self._old.operators.get(one), self._new.operators.get(other)
        return old is not None and new is not None and old.alike == new.alike

    def has_rows(self, one: str) -> bool:
        """Return whether a checkpoint holds keyed state of an operator."""
        return one in self._fingerprints

    def of(self, one: str, other: str) -> Migration | Obstacle | None:
        """Return how the state of ``one`` goes on as that of ``other``; None when all its columns are as
        they were, or nothing is known of them.
        """
        old, new = self._old.operators.get(one), self._new.operators.get(other)
        if old is None or new is None or len(old.ports) != len(new.ports):
            return None
        narrowed = next(self._narrowed(other), None)
        if narrowed is not None:
            return Obstacle(narrowed)
        sums = any(_SUMS.search(text) for text in self._fingerprints.get(one, ()))
        ports: list[tuple[int, ...]] = []
        said: list[str] = []
        for before, after in zip(old.ports, new.ports, strict=True):
            places = self._places(before, after, sums, said)
            if isinstance(places, Obstacle):
                return places
            ports.append(places)
        same = all(
            places == tuple(range(len(before))) for places, before in zip(ports, old.ports, strict=True)
        )
        if same and not said and old.alike == new.alike and one == other:
            return None
        return Migration(tuple(ports), ", ".join(dict.fromkeys(said)))

    def _places(
        self, old: tuple[CarriedColumn, ...], new: tuple[CarriedColumn, ...], sums: bool, said: list[str]
    ) -> tuple[int, ...] | Obstacle:
        """Return where each column stood; the former ones must all be there, in their order."""
        places: list[int] = []
        done = 0
        for column in new:
            if done < len(old) and old[done].text == column.text:
                was = old[done].type
                if not keeps_layout(was, column.type):
                    return Obstacle(f"column {column.name} was {was} and is {column.type}")
                if sums and crosses_words(was, column.type):
                    return Obstacle(
                        f"column {column.name} was {was} and is {column.type}: what is aggregated "
                        "of more than 18 digits is kept otherwise"
                    )
                said += [] if was == column.type else [f"{column.name} {was} is {column.type}"]
                places.append(done)
                done += 1
                continue
            why = self._not_added(column)
            if why is not None:
                return Obstacle(
                    f"its rows have a column {column.name} {column.type} that those kept have not, and {why}"
                )
            said.append(f"{column.name} {column.type} is added, NULL in what is kept")
            places.append(-1)
        if done < len(old):
            return Obstacle(f"column {old[done].name} {old[done].type} of what is kept is not at its place")
        return tuple(places)

    def _not_added(self, column: CarriedColumn) -> str | None:
        """Return why a column cannot be NULL in the rows there are, None if it can: it was added to the
        end of its table, and may be NULL.
        """
        if not column.origins:
            return "it is computed"
        for key, name in column.origins:
            table, was = self._is.get(key), self._was.get(key)
            if table is None or was is None:
                return "nothing is known of its table"
            names = [one.name for one in table.columns]
            before = [one.name for one in was.columns]
            if name in before:
                return f"table {table.name} had it then: the rows kept were taken without it"
            if names[: len(before)] != before:
                return f"it is not at the end of table {table.name} as it was declared"
            if not table.columns[names.index(name)].optional:
                return (
                    "it is NOT NULL, filled by the connector, or of a table of changes, which may take "
                    "rows back with another value"
                )
        return None

    def _narrowed(self, other: str) -> Iterator[str]:
        """Yield what became of columns that are read below an operator and are neither what they were nor
        wider.
        """
        below = self._plan.below.get(other, frozenset())
        for key, table in self._is.items():
            if self._was.get(key) is not None and self._reads(below, key):
                yield from _narrowed(self._was[key], table)

    def _reads(self, below: frozenset[str], key: str) -> bool:
        """Return whether a table's rows come to an operator: not when only sources elsewhere read it."""
        readers = {
            o.operator_id
            for o in self._plan.operators
            if o.role is OperatorRole.SOURCE and o.place.startswith(key)
        }
        return not readers or bool(readers & below)


def _narrowed(old: DeclaredTable, new: DeclaredTable) -> Iterator[str]:
    was = {column.name: column for column in old.columns if column.read}
    for column in new.columns:
        before = was.get(column.name)
        if column.read and before is not None and not keeps_layout(before.type, column.type):
            yield f"column {column.name} of table {new.name} was {before.type} and is {column.type}"
