"""The accumulator of one aggregate against lists of values: after any steps of adding, retracting, clearing,
merging and restoring it gives what a plain function of the values gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.aggregates.accumulator import Part

SLOTS = 3
STEPS = ("add", "add", "add row by row", "clear", "merge", "restore")


@dataclass(frozen=True)
class Reference:
    """What a part is compared with: ``expected`` of a slot's values against ``read`` of the part, each by
    name. ``values`` are drawn from, none is NULL; a part that does not ``retract`` gets no negative weight.
    """

    make: Callable[[], Any]
    kind: pa.DataType
    values: Sequence[Any]
    read: Callable[[Any, np.ndarray], dict[str, pa.Array]]
    expected: Callable[[list[Any]], dict[str, Any]]
    retract: bool = True

    def part(self) -> Any:
        """Return an empty part for all slots."""
        part = self.make()
        part.reserve(SLOTS)
        return part


Model = dict[int, list[Any]]
Rows = list[tuple[int, Any, int]]
"""Slot, value, weight."""


def add_rows(part: Part, kind: pa.DataType, rows: Rows, *, weighted: bool = True) -> None:
    """Add rows in one batch; ``weighted`` False: as rows of weight 1 that bring no weights."""
    slots, values, weights = zip(*rows, strict=True) if rows else ((), (), ())
    part.add(
        np.array(slots, np.int64),
        pa.array(values, kind),
        np.array(weights, np.int64) if weighted else col.NO_WORDS,
    )


def follows_its_reference(reference: Reference, seeds: int = 150) -> None:
    """Take random steps and compare the part with its reference after each; the same ones in every run."""
    for seed in range(seeds):
        random = Random(seed)
        part, model = reference.part(), empty()
        for _ in range(random.randrange(1, 7)):
            part = _step(reference, random, part, model)
            compare(reference, part, model, f"seed {seed}")


def empty() -> Model:
    """Return a model in which no slot has a value."""
    return {slot: [] for slot in range(SLOTS)}


def _step(reference: Reference, random: Random, part: Any, model: Model) -> Any:
    """Take one step with the part and the model; return the part, a new one where it was restored."""
    match step := random.choice(STEPS):
        case "add" | "add row by row":
            rows = _drawn(reference, random, model)
            for piece in [rows] if step == "add" else [[row] for row in rows]:
                add_rows(part, reference.kind, piece, weighted=any(weight != 1 for *_, weight in piece))
        case "clear":
            slots = random.sample(range(SLOTS), random.randint(0, SLOTS))
            part.clear(np.array(slots, np.int64))
            model |= {slot: [] for slot in slots}
        case "merge":
            other, values = reference.part(), empty()
            add_rows(other, reference.kind, _drawn(reference, random, values))
            into = [random.randrange(SLOTS) for _ in range(SLOTS)]  # a slot may repeat
            part.merge(np.array(into, np.int64), other, np.arange(SLOTS))
            for slot, target in enumerate(into):
                model[target] = model[target] + values[slot]
        case "restore":
            slots = random.sample(range(SLOTS), SLOTS)
            columns = part.freeze(SLOTS)(None)(np.array(slots, np.int64))
            part = reference.part()
            part.restore(np.array(slots, np.int64), columns)
    return part


def _drawn(reference: Reference, random: Random, model: Model) -> Rows:
    """Draw rows and change the model by them: new values, and retractions of some that are there."""
    rows = [
        (random.randrange(SLOTS), random.choice(reference.values), random.choice((1, 1, 1, 2)))
        for _ in range(random.randrange(7))
    ]
    for slot, value, weight in rows:
        model[slot] = model[slot] + [value] * weight
    for slot in range(SLOTS) if reference.retract else ():
        for _ in range(random.randint(0, min(2, len(model[slot])))):
            gone = random.randrange(len(model[slot]))
            rows.append((slot, model[slot][gone], -1))
            model[slot] = model[slot][:gone] + model[slot][gone + 1 :]
    return rows


def compare(reference: Reference, part: Any, model: Model, run: str = "") -> None:
    """Compare the results of all slots, asked for in another order than that of the slots."""
    slots = list(reversed(range(SLOTS)))
    read = reference.read(part, np.array(slots, np.int64))
    for name, column in read.items():
        column.validate(full=True)
        for slot, got in zip(slots, column.to_pylist(), strict=True):
            want = reference.expected(model[slot])[name]
            assert same(got, want), f"{name} of {model[slot]} is {got}, not {want}; {run}"
    assert read.keys() == reference.expected([]).keys()


def same(got: Any, want: Any) -> bool:
    """Whether a result is the expected one: floating-point numbers up to what rounding may lose."""
    if isinstance(want, list) and got is not None:
        return len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, float) and got is not None:
        return (
            math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-6)
            or (math.isnan(got) and math.isnan(want))
            or got == want
        )
    return got == want


def order(value: Any) -> Any:
    """The sort key of a value as SQL orders it: NaN is the largest number, texts go by their bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value
