"""State variables against dicts: whatever is written, removed and restored, at any number of subtasks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.process_table_functions import StateDeclaration, StateKind
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.clock import ManualClock
from penstock.engine.state.partitioned.partition_rows import PartitionKeys
from penstock.engine.state.partitioned.state_variables import StateVariable, make_variable
from penstock.engine.state.time_to_live import LastWrites

KEYS = [None, "a", "b", "cd", "e"]


class Held:
    """A variable with its partitions, restored from others where there are some."""

    def __init__(self, declared: StateDeclaration, clock: ManualClock | None = None) -> None:
        self.partitions = PartitionKeys.of([pa.string()], 128)
        writes = LastWrites(1_000, clock) if clock else None
        self.state: StateVariable = make_variable(declared, self.partitions, writes)

    def slots(self, keys: list[str | None]) -> np.ndarray:
        return self.partitions.keys.lookup_or_insert([pa.array(keys, pa.string())], len(keys))

    def rescaled(self, declared: StateDeclaration, cut: int, clock: ManualClock | None = None) -> Held:
        """Restore the state in two subtasks, cut between two key groups, and the state of both in one."""
        tables = [self.state.snapshot()]
        for bounds in ((0, cut, 129), (0, 129)):
            made = [Held(declared, clock) for _ in bounds[1:]]
            for table in tables:
                groups = np.asarray(table.column("key_group")).astype(np.int64)
                assert (np.diff(groups) >= 0).all()
                for held, low, high in zip(made, bounds, bounds[1:], strict=False):
                    held.state.restore(table.filter(pa.array((groups >= low) & (groups < high))))
            tables = [held.state.snapshot() for held in made]
        return made[0]


def content(held: Held, kind: StateKind) -> dict[str | None, Any]:
    """What a variable holds, by key."""
    slots = held.slots(list(KEYS))
    if kind is not StateKind.MAP:
        values = held.state.get(slots).to_pylist()  # type: ignore[union-attr, call-arg]
        return {key: value for key, value in zip(KEYS, values, strict=True) if value not in (None, [])}
    found: dict[str | None, Any] = {}
    positions, keys, values = held.state.entries(slots)  # type: ignore[union-attr]
    for at, key, value in zip(positions.tolist(), keys.to_pylist(), values.to_pylist(), strict=True):
        found.setdefault(KEYS[at], {})[key] = value
    return found


@pytest.mark.parametrize("kind", StateKind)
@pytest.mark.parametrize("seed", range(4))
def test_like_dicts(kind: StateKind, seed: int) -> None:
    dice = random.Random(seed)
    declared = StateDeclaration(kind, BIGINT, STRING if kind is StateKind.MAP else None)
    held, model = Held(declared), {}  # type: ignore[var-annotated]
    for _ in range(60):
        write(held, kind, dice.sample(KEYS, dice.randint(1, len(KEYS))), model, dice)
        if dice.random() < 0.2:
            held = held.rescaled(declared, dice.randrange(129))
        assert content(held, kind) == {key: value for key, value in model.items() if value not in ({}, [])}


def write(held: Held, kind: StateKind, keys: list[Any], model: dict[Any, Any], dice: random.Random) -> None:
    slots = held.slots(keys)
    drawn = [dice.randrange(9) for _ in keys]
    if kind is StateKind.VALUE:
        values = [None if value > 6 else value for value in drawn]
        held.state.put(slots, pa.array(values, pa.int64()))  # type: ignore[union-attr, arg-type]
        for key, value in zip(keys, values, strict=True):
            model[key] = value
            if value is None:
                del model[key]
    elif kind is StateKind.LIST and dice.random() < 0.7:
        held.state.extend(np.repeat(slots, 2), pa.array(np.repeat(drawn, 2), pa.int64()))  # type: ignore[union-attr]
        for key, value in zip(keys, drawn, strict=True):
            model.setdefault(key, []).extend([value, value])
    elif kind is StateKind.MAP and dice.random() < 0.8:
        names = [dice.choice("xyz") for _ in keys]
        if dice.random() < 0.3:
            held.state.discard(slots, pa.array(names))  # type: ignore[union-attr]
            for key, name in zip(keys, names, strict=True):
                model.get(key, {}).pop(name, None)
        else:
            # each pair twice: the second counts
            twice = pa.array([*[9] * len(keys), *drawn], pa.int64())
            held.state.set(np.tile(slots, 2), pa.array(names * 2), twice)  # type: ignore[union-attr]
            for key, name, value in zip(keys, names, drawn, strict=True):
                model.setdefault(key, {})[name] = value
            found = held.state.get(slots, pa.array(names))  # type: ignore[union-attr, call-arg]
            assert found.to_pylist() == drawn
    else:
        held.state.clear(slots)
        for key in keys:
            model.pop(key, None)


def test_what_was_not_written_for_its_time_to_live_is_due_after_a_restore_too() -> None:
    clock, declared = ManualClock(0), StateDeclaration(StateKind.LIST, BIGINT)
    held = Held(declared, clock)
    early, late = held.slots(["a"]), held.slots(["b"])
    held.state.extend(early, pa.array([1]))  # type: ignore[union-attr]
    held.state.extend(late, pa.array([1]))  # type: ignore[union-attr]
    clock.advance(600)
    held.state.extend(late, pa.array([2]))  # type: ignore[union-attr]
    for one in (held, held.rescaled(declared, 60, clock)):
        assert one.state.due(1_100).tolist() == one.slots(["a"]).tolist()
        one.state.clear(one.slots(["a"]))
        assert not one.state.due(1_500).size
        assert one.state.due(1_700).tolist() == one.slots(["b"]).tolist()
