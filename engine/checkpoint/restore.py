"""Restoring: selects the parts of a checkpoint that belong to a subtask at the current parallelism."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.engine.api.operator import Context, EvolvingState
from penstock.engine.api.row_pieces import parts_by_group
from penstock.engine.api.stream_elements import Batch
from penstock.engine.checkpoint.manifest import Manifest, Migration, OperatorEntry
from penstock.engine.checkpoint.snapshot_format import (
    KeyedPart,
    WrittenTask,
    read_items,
    read_pieces,
    read_state,
    schema_fingerprint,
)
from penstock.engine.checkpoint.state_evolution import evolved
from penstock.engine.checkpoint.state_migration import migrated
from penstock.engine.exchange.channel_state import (
    RESERVED,
    ChannelStateTarget,
    batches_of,
    channel_state_target,
)
from penstock.engine.exchange.input_gate import InputGate
from penstock.engine.state.state_snapshot import OPTIONAL
from penstock.engine.storage.storage import Storage
from penstock.engine.task.operator_chain import ChainedOperator, OperatorChain

# Of a list type: the name its values have.
_VALUES = re.compile(r"list<\w+: ")


def check_channel_state(manifest: Manifest, operators: Iterable[OperatorEntry]) -> None:
    """Refuse channel state to operators that are not among these: STA-3045."""
    # Channel state holds batches in the layout of the plan that wrote them.
    present = {operator.operator_id for operator in operators}
    names = {operator.operator_id: operator.name for operator in manifest.operators}
    lost = sorted(
        {
            f"{names.get(i, '?')} [{i}]"
            for goal, _, _ in _channel_state(manifest)
            if (i := goal.operator_id) not in present
        }
    )
    if lost:
        raise PenstockError(
            "STA-3045",
            f"checkpoint {manifest.checkpoint_id} has rows in flight to operators that this plan "
            "does not have or has changed",
            detail="to " + ", ".join(lost),
            hint="start the job as it was; ALTER JOB 'id' SET PARALLELISM, STOP JOB and savepoints leave "
            "no rows in flight",
            sqlstate="55000",
        )


def _channel_state(manifest: Manifest) -> list[tuple[ChannelStateTarget, WrittenTask, KeyedPart]]:
    """Return the channel state of a checkpoint: the operator it was sent to, and the part that stores it."""
    return [
        (goal, task, part)
        for task in sorted(manifest.tasks, key=lambda t: t.task)
        for part in task.keyed
        if (goal := channel_state_target(part.operator_id, part.state)) is not None
    ]


class Restorer:
    """Restores the operators of a subtask from one checkpoint."""

    def __init__(self, storage: Storage, manifest: Manifest, batch_max_rows: int) -> None:
        self._storage = storage
        self._manifest = manifest
        self._batch_max_rows = batch_max_rows
        self._known = {o.operator_id: o for o in manifest.operators}
        self._migrations = manifest.migrations

    def restore(self, chain: OperatorChain, gate: InputGate | None) -> None:
        """Restore every operator of a chain by its id: list states with the items of all subtasks, then keyed
        states by the subtask's key groups.

        Channel state follows: it is put back in front of the operator it was sent to, by the subtask's key
        groups.
        """
        # By id: chaining may have changed since.
        for chained in chain.operators:
            if chained.context.operator_id in self._known:
                # The id under which another plan wrote this state.
                former = self._known[chained.context.operator_id].former
                if former is not None:
                    # its pending commits carry the former operator id
                    chained.operator.succeeds(former)
                # List states first: keyed states read the watermark they restore.
                self._restore_items(chained)
                self._restore_keyed(chained)
        for index, chained in enumerate(chain.operators):
            for (port, source), batches in self._channel_state(chained.context).items():
                if index == 0 and gate is not None:
                    # the head of the chain reads from the channels of its gate
                    gate.put_back(port, source, batches)
                else:
                    # operators behind the head have one input, without channels
                    chain.put_back(index, batches)

    def _channel_state(self, target: Context) -> dict[tuple[int, int], list[Batch]]:
        """Return the channel state of an operator by port and source subtask. Within a channel the received
        rows precede those that were not sent.
        """
        by_channel: dict[tuple[int, int], list[Batch]] = {}
        groups = target.key_groups
        mine = [
            stored for stored in _channel_state(self._manifest) if stored[0].operator_id == target.operator_id
        ]
        # rows the receiver had buffered precede those the sender had not sent ``left``: the row had left the
        # sender, so it precedes those that had not.
        for goal, task, part in sorted(mine, key=lambda stored: not stored[0].left):
            table = read_state(self._storage, task, (part,), groups.start, groups.end)
            for source, batch in () if table is None else batches_of(table, self._batch_max_rows):
                by_channel.setdefault((goal.port, source), []).append(batch)
        return by_channel

    def _restore_keyed(self, chained: ChainedOperator) -> None:
        groups = chained.context.key_groups
        if chained.operator.refuses_unknown_states:
            self._refuse_unknown(chained)
        # Of every subtask of the checkpoint: after rescaling, a key group's entries may be in any of them.
        for name, state in chained.operator.keyed_states().items():
            stored = self._tasks_with(chained, name)
            migration = self._migrations.get(chained.context.operator_id)
            wanted: pa.Schema = state.snapshot().schema
            evolves = isinstance(state, EvolvingState)
            # Migration and evolution compare and convert columns themselves.
            if migration is None and not evolves:
                _check_schema(chained, name, wanted, stored)
            for task, increments in stored:
                start, end = (
                    # copied states: every subtask needs all key groups
                    (0, groups.max_parallelism)
                    if name in chained.operator.copied_states()
                    else (groups.start, groups.end)
                )
                for read in read_pieces(self._storage, task, increments, start, end):
                    table = _evolved(chained, name, wanted, read) if evolves else read
                    # A large piece is cut further: a state restores parts of limited size.
                    for part in parts_by_group(
                        table if migration is None else _migrated(chained, name, wanted, table, migration)
                    ):
                        state.restore(part)

    def _refuse_unknown(self, chained: ChainedOperator) -> None:
        """Refuse a checkpoint with state that a function does not declare any more: it would be lost."""
        known, operator_id = chained.operator.keyed_states(), chained.context.operator_id
        for part in (part for task in self._manifest.tasks for part in task.keyed):
            stored = part.operator_id == operator_id and not part.state.startswith(RESERVED)
            if stored and part.state not in known:
                hint = "declare it as it was, or give the function another version to begin without state"
                raise _foreign(chained, f"the checkpoint has state {part.state}, which is not declared", hint)

    def _restore_items(self, chained: ChainedOperator) -> None:
        for name, state in chained.operator.list_states().items():
            items: list[dict[str, Any]] = []
            # list states are not keyed: every subtask gets the items of all
            for task in sorted(self._manifest.tasks, key=lambda t: t.task):
                for part in task.items:
                    if (part.operator_id, part.state) == (chained.context.operator_id, name):
                        items += read_items(self._storage, task.file_of(part), part)
            state.restore_items(items)

    def _tasks_with(
        self, chained: ChainedOperator, name: str
    ) -> list[tuple[WrittenTask, tuple[KeyedPart, ...]]]:
        """Return the tasks with a keyed state, and its increments there."""
        operator_id = chained.context.operator_id
        tasks = sorted(self._manifest.tasks, key=lambda t: t.task)
        stored = [(task, increments) for task in tasks if (increments := task.increments(operator_id, name))]
        # Channel state lies under reserved names and is no state of the operator.
        states = {
            part.state
            for task in tasks
            for part in task.keyed
            if part.operator_id == operator_id and not part.state.startswith(RESERVED)
        }
        # the operator has state, but not this one: the checkpoint is of another version or query
        if states and not stored and name not in chained.operator.added_states:
            raise _foreign(
                chained, f"it has no state {name}", did_you_mean(name, sorted(states), others=True)
            )
        return stored


def _check_schema(
    chained: ChainedOperator,
    name: str,
    wanted: pa.Schema,
    stored: list[tuple[WrittenTask, tuple[KeyedPart, ...]]],
) -> None:
    for part in (part for _, increments in stored for part in increments):
        # A snapshot of the key group alone has no columns to compare.
        if len(wanted) > 1 and _lasting(part.fingerprint) != _lasting(schema_fingerprint(wanted)):
            raise _foreign(
                chained,
                f"state {name} has columns ({part.fingerprint}), wanted are ({schema_fingerprint(wanted)})",
                None,
            )


def _migrated(
    chained: ChainedOperator, name: str, wanted: pa.Schema, table: pa.Table, migration: Migration
) -> pa.Table:
    """Return entries in the state's current columns; STA-3009 when they do not fit."""
    # A state with the rows of one input port has that port's columns.
    port = chained.operator.state_ports().get(name, 0)
    converted = migrated(table, wanted, migration.ports[port] if migration.ports else ())
    if converted is None:
        raise _foreign(
            chained,
            f"state {name} has columns ({schema_fingerprint(table.schema)}), wanted are "
            f"({schema_fingerprint(wanted)})",
            None,
        )
    return converted


def _evolved(chained: ChainedOperator, name: str, wanted: pa.Schema, table: pa.Table) -> pa.Table:
    """Return entries of a declared state in its current types; STA-3009 when they do not fit."""
    made = evolved(table, wanted)
    if isinstance(made, str):
        hint = "declare the former types, with nullable fields added; or give the function another version"
        raise _foreign(chained, f"state {name}: {made}", hint)
    return made


def _lasting(fingerprint: str) -> str:
    """Return a fingerprint without the optional columns of a state.

    Checkpoints of format 1.2 and before may name the values of a list as a file did.
    """
    # From the last one: they are written in the order of OPTIONAL.
    for name in reversed(OPTIONAL):
        fingerprint = fingerprint.removesuffix(f", {name} int64")
    return _VALUES.sub("list<item: ", fingerprint)


def _foreign(chained: ChainedOperator, facts: str, hint: str | None) -> PenstockError:
    message = f"the state of operator {chained.context.name} does not fit"
    return PenstockError(
        "STA-3009",
        message,
        detail=facts,
        hint=hint,
        kind=Kind.EXTERNAL,
        sqlstate="55000",
        operator=chained.context.name,
    )
