"""Query evolution: which operators of a changed query retain their state, which start empty, which state is
dropped, and when the result would be wrong.

Operators match when their digests do: the same rows of the same tables, whatever consumes them. Sources and
their watermark generators also match when they read other columns or rows: they resume from their positions.
Sinks of one table match.

Types may have become wider, and tables may have got columns at their end. Such operators match when their
state can be migrated (``penstock.engine.checkpoint.state_migration``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.checkpoint.manifest import Manifest, Migration, OperatorEntry, OperatorRole
from penstock.engine.checkpoint.plan_identity import PlanIdentity, fingerprint_of
from penstock.engine.checkpoint.restore import check_channel_state
from penstock.engine.checkpoint.state_migration import Migrations, Obstacle
from penstock.planner.physical.state_compatibility import PlanCompatibility

# The setting that allows a changed query to drop state.
ALLOWED = "execution.state-recovery.ignore-unclaimed-state"


class Fate(StrEnum):
    """What happens to an operator's state."""

    KEPT = "kept"
    MIGRATED = "migrated"
    REBUILT = "rebuilt from the beginning"
    DROPPED = "dropped"


@dataclass(frozen=True)
class StateChange:
    """One operator with state: what happens to it, and its bytes in the checkpoint."""

    operator: OperatorEntry
    fate: Fate
    size_bytes: int
    note: str = ""

    def __str__(self) -> str:
        size = f", {self.size_bytes:,} bytes" if self.fate is not Fate.REBUILT else ""
        return f"{self.fate}: {self.operator.name} [{self.operator.operator_id}]{size}{self.note}"


@dataclass(frozen=True)
class StateDiff:
    """What a changed query does with a checkpoint. ``matches``: new operator ids by old ones; ``refusals``:
    why the result would be wrong.

    ``migrations``: by new operator id, how state is converted to other types.
    """

    changes: tuple[StateChange, ...]
    matches: Mapping[str, str]
    refusals: tuple[str, ...]
    migrations: Mapping[str, Migration] = field(default_factory=dict)


def continued(manifest: Manifest, plan: PlanIdentity, *, allowed: bool) -> tuple[Manifest, StateDiff | None]:
    """Return a checkpoint as this plan's, and the changes (None: no change).

    Raises STA-3008 for another number of key groups, and STA-3007 for another query unless it is ``allowed``.
    STA-3043 when the result would be wrong, STA-3045 for channel state to an operator that has changed.
    """
    # a key's group depends on the number of groups: with another number no key finds its state
    if manifest.max_parallelism != plan.max_parallelism:
        raise PenstockError(
            "STA-3008",
            f"the job's state has {manifest.max_parallelism} key groups, this plan has "
            f"{plan.max_parallelism}",
            hint=f"set 'pipeline.max-parallelism' = '{manifest.max_parallelism}'",
            sqlstate="55000",
        )
    manifest = _with_stored_state(manifest, plan)
    # same operators with state: restore as it is
    if manifest.fingerprint == plan.fingerprint:
        check_channel_state(manifest, plan.operators)
        return manifest, None
    if (same := _reached_otherwise(manifest, plan)) is not None:
        check_channel_state(manifest, ())
        return replace(_renamed(manifest, plan, same), compatibility=plan.compatibility), None
    diff = state_diff(manifest, plan)
    lines = [str(change) for change in diff.changes]
    elsewhere = "run the query the state was made by, or give this one another state directory or name"
    if not allowed:
        hint = (
            elsewhere
            if diff.refusals
            else f"--allow-changed-query, or SET '{ALLOWED}' = 'true', resumes with these changes; or "
            f"{elsewhere}"
        )
        message = f"the state of checkpoint {manifest.checkpoint_id} belongs to another query than this one"
        raise PenstockError(
            "STA-3007", message, detail="\n".join([*lines, *diff.refusals]), hint=hint, sqlstate="55000"
        )
    if diff.refusals:
        message = f"the state of checkpoint {manifest.checkpoint_id} would make this query's answer wrong"
        hint = "write into another table, or " + elsewhere
        raise PenstockError(
            "STA-3043", message, detail="\n".join([*diff.refusals, *lines]), hint=hint, sqlstate="55000"
        )
    # batches in channels have the layout of the former plan: none may be restored
    check_channel_state(manifest, ())
    return replace(
        _renamed(manifest, plan, diff.matches), compatibility=plan.compatibility, migrations=diff.migrations
    ), diff


def _with_stored_state(manifest: Manifest, plan: PlanIdentity) -> Manifest:
    """Return a checkpoint whose operators keep state where it has some of them. Before 28 November 2026 the
    engine did not count sessions of rows among the operators with state, so an open session could be lost
    with a changed query, and nothing was told.
    """
    stored = {part.operator_id for task in manifest.tasks for part in task.keyed}
    # what keeps none in this plan needs none
    stored -= {operator.operator_id for operator in plan.operators if not operator.keeps_state}
    if all(operator.keeps_state or operator.operator_id not in stored for operator in manifest.operators):
        return manifest
    operators = tuple(
        replace(operator, keeps_state=operator.keeps_state or operator.operator_id in stored)
        for operator in manifest.operators
    )
    return replace(manifest, operators=operators, fingerprint=fingerprint_of(operators))


def _reached_otherwise(manifest: Manifest, plan: PlanIdentity) -> dict[str, str] | None:
    """Return new operator ids by old ones where a query has only other options of its clients: other brokers,
    another user, another group. None where it differs in more.
    """
    old = _by_reached(manifest.operators, manifest.compatibility)
    new = _by_reached(plan.operators, plan.compatibility)
    if old is None or new is None or old.keys() != new.keys():
        return None
    return {old[reached]: new[reached] for reached in old}


def _by_reached(
    operators: Iterable[OperatorEntry], compatibility: PlanCompatibility
) -> dict[str, str] | None:
    """Return the ids of operators with state by digests that do not know how tables are reached; None where
    one has no such digest, or two have one.
    """
    ids: dict[str, str] = {}
    for operator in operators:
        if operator.keeps_state:
            known = compatibility.operators.get(operator.operator_id)
            if known is None or not known.reached or known.reached in ids:
                return None
            ids[known.reached] = operator.operator_id
    return ids


def fits_better(manifest: Manifest, one: PlanIdentity, other: PlanIdentity) -> bool:
    """Return whether a checkpoint loses less under one plan of a query than under another."""
    return _losses(manifest, one) < _losses(manifest, other)


def _losses(manifest: Manifest, plan: PlanIdentity) -> tuple[int, int]:
    manifest = _with_stored_state(manifest, plan)
    # the state of an equal plan is all kept, and nothing is added
    if manifest.fingerprint == plan.fingerprint or _reached_otherwise(manifest, plan) is not None:
        return 0, 0
    diff = state_diff(manifest, plan)
    lost = sum(change.fate in (Fate.REBUILT, Fate.DROPPED) for change in diff.changes)
    return len(diff.refusals), lost


def state_diff(manifest: Manifest, plan: PlanIdentity) -> StateDiff:
    """Match the operators of a checkpoint with those of a plan."""
    # Operators without state are of no interest: they may change freely.
    old = {o.operator_id: o for o in manifest.operators if o.keeps_state}
    new = {o.operator_id: o for o in plan.operators if o.keeps_state}
    matches, migrations, obstacles = _matches(old, new, Migrations(manifest, plan))
    # sinks whose table already contains output of the former query
    begun = {operator_id for operator_id in matches.values() if new[operator_id].role is OperatorRole.SINK}
    refusals = []
    for operator in new.values():
        # The sinks that this operator's rows reach, itself included.
        sinks = [
            s
            for s in new.values()
            if s.role is OperatorRole.SINK
            and (operator.operator_id in plan.below[s.operator_id] or s is operator)
        ]
        resumed = [sink for sink in sinks if sink.operator_id in begun]
        fresh = [sink for sink in sinks if sink.operator_id not in begun]
        # all its sinks are new: rebuild the operator from the beginning, with a complete result
        if not resumed:
            matches = {one: other for one, other in matches.items() if other != operator.operator_id}
        # an empty operator would emit a result of later rows only into a table that has the earlier result
        elif operator.operator_id not in matches.values():
            left = [o for i, o in old.items() if i not in matches]
            refusals.append(_no_state(operator, resumed[0], left, obstacles.get(operator.operator_id, {})))
        # one operator cannot both resume for an old sink and start over for a new one
        elif fresh:
            refusals.append(
                f"{fresh[0].name} needs all rows of {operator.name}, which resumes where {resumed[0].name} is"
            )
    sizes = _sizes(manifest)
    retained = [
        _describe_continued(one, new[other], sizes.get(one, 0), migrations.get(other))
        for one, other in matches.items()
    ]
    # After the refusals: some matches were dropped above.
    rebuilt = [StateChange(o, Fate.REBUILT, 0) for o in new.values() if o.operator_id not in matches.values()]
    dropped = [
        StateChange(o, Fate.DROPPED, sizes.get(i, 0), _unfinished(manifest, o))
        for i, o in old.items()
        if i not in matches
    ]
    # Migrated operators first: they explain most to a reader.
    retained.sort(key=lambda change: change.fate is not Fate.MIGRATED)
    return StateDiff((*retained, *rebuilt, *dropped), matches, tuple(dict.fromkeys(refusals)), migrations)


def _matches(
    old: Mapping[str, OperatorEntry], new: Mapping[str, OperatorEntry], migrations: Migrations
) -> tuple[dict[str, str], dict[str, Migration], dict[str, dict[str, str]]]:
    """Pair operators by id, then by their position, then by digests that ignore widths and added columns.

    Return new ids by old ones; by new id how state is migrated; by old id what prevents it.
    """
    # Equal ids mean equal digests: the state fits as it is.
    matches = {operator_id: operator_id for operator_id in old if operator_id in new}
    accepted: dict[str, Migration] = {}
    obstacles: dict[str, dict[str, str]] = {}
    # an operator matches once, and the first candidate has precedence
    for one, other in _candidates(old, new, migrations):
        if one in matches or other in matches.values():
            continue
        # None: its columns are unchanged or unknown; the layouts are checked when they are restored.
        migration = migrations.of(one, other)
        # positions, watermarks and commits have no types
        # Such operators resume from positions even if other columns are read.
        moves = new[other].place and not migrations.has_rows(one)
        if isinstance(migration, Obstacle) and not moves:
            obstacles.setdefault(other, {})[one] = migration.reason
            continue
        matches[one] = other
        if isinstance(migration, Migration) and not moves:
            accepted[other] = migration
    return matches, accepted, obstacles


def _candidates(
    old: Mapping[str, OperatorEntry], new: Mapping[str, OperatorEntry], migrations: Migrations
) -> Iterator[tuple[str, str]]:
    # first sources, sinks and watermark generators, by their tables
    for one, was in old.items():
        yield from (
            (one, other)
            for other, now in new.items()
            # Same role and same table.
            if now.place and (now.role, now.place) == (was.role, was.place)
        )
    for one in old:
        yield from (
            # then inner operators, by the digest that ignores widths and added columns
            (one, other)
            for other, now in new.items()
            # Operators without a table.
            if not now.place and migrations.alike(one, other)
        )


def _describe_continued(
    one: str, operator: OperatorEntry, size_bytes: int, migration: Migration | None
) -> StateChange:
    if migration is None:
        return StateChange(
            operator,
            Fate.KEPT,
            size_bytes,
            "" if one == operator.operator_id else f", was {one}: resumes from its position",
        )
    return StateChange(
        operator, Fate.MIGRATED, size_bytes, f", was {one}: {migration.note or 'what it reads is wider'}"
    )


def _no_state(
    operator: OperatorEntry,
    sink: OperatorEntry,
    dropped: Iterable[OperatorEntry],
    obstacles: Mapping[str, str],
) -> str:
    """Return why rows of a new operator may not follow those of another one."""
    sentence = (
        f"{operator.name} ({operator.columns}) has no state in it, and {sink.name} has rows of the "
        "former query"
    )
    candidates = [
        o
        for o in dropped
        if o.operator_id in obstacles or (o.role is operator.role and _kind(o) == _kind(operator))
    ]
    # the ones with a known obstacle explain most: list them first
    candidates.sort(key=lambda o: o.operator_id not in obstacles)
    return sentence + "".join(
        # A few suffice: the message is for people.
        f"; there is {o.name} ({o.columns}){_but(obstacles.get(o.operator_id))}"
        for o in candidates[:3]
    )


def _but(obstacle: str | None) -> str:
    return "" if obstacle is None else f", but {obstacle}"


def _kind(operator: OperatorEntry) -> str:
    """Return the kind of an operator from its name; the phases of a two-phase aggregate have the same."""
    return operator.name.removeprefix("global ").split(" ")[0]


def _unfinished(manifest: Manifest, operator: OperatorEntry) -> str:
    """Return a note about a sink's pending commits: they are done when the job was stopped, maybe not when it
    was killed.
    """
    # Items of a sink's list states are its prepared commits.
    pending = sum(
        part.count
        for task in manifest.tasks
        for part in task.items
        if part.operator_id == operator.operator_id
    )
    if operator.role is not OperatorRole.SINK or not pending:
        return ""
    return (
        f"; {pending} commits prepared with the checkpoint are not repeated: they are done if the job "
        "was stopped, maybe not if it was killed"
    )


# Bytes of an operator's state over all tasks.
def _sizes(manifest: Manifest) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for task in manifest.tasks:
        lengths = [(part.operator_id, part.length) for part in task.keyed] + [
            (part.operator_id, part.length) for part in task.items
        ]
        for operator_id, length in lengths:
            sizes[operator_id] = sizes.get(operator_id, 0) + length
    return sizes


def _renamed(manifest: Manifest, plan: PlanIdentity, matches: Mapping[str, str]) -> Manifest:
    """Return a checkpoint with the operators' new ids, without the state of removed operators."""
    # Operators without state keep their ids: nothing refers to them.
    stateless = {o.operator_id: o.operator_id for o in manifest.operators if not o.keeps_state}
    names = {**stateless, **matches}
    operators = tuple(
        replace(
            o,
            operator_id=names[o.operator_id],
            # A sink recognises pending commits by the former id.
            former=None if names[o.operator_id] == o.operator_id else o.operator_id,
        )
        for o in manifest.operators
        if o.operator_id in names
    )
    tasks = tuple(
        replace(
            task,
            operators=tuple(names.get(operator, operator) for operator in task.operators),
            keyed=tuple(
                replace(part, operator_id=names[part.operator_id])
                # State of operators that the plan has not is left out, and is no longer read.
                for part in task.keyed
                if part.operator_id in names
            ),
            items=tuple(
                replace(part, operator_id=names[part.operator_id])
                for part in task.items
                if part.operator_id in names
            ),
        )
        for task in manifest.tasks
    )
    return replace(manifest, operators=operators, tasks=tasks, fingerprint=plan.fingerprint)
