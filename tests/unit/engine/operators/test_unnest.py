"""Unnest beside a naive reference: rows in their order, weights and marks follow, columns nobody reads are
not given.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, INT, STRING, Array, Row, to_arrow
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.unnest import UnnestOperator
from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.unnest import TableCall
from tests.harness.operator_specs import unnest_spec
from tests.harness.operators import Remembered, opened

PAIR = Row((("x", INT), ("y", STRING)))
INPUT = Schema((Field("id", BIGINT), Field("rs", Array(PAIR))))
CALL = TableCall(
    "unnest", (Column(Array(PAIR), True, index=1, name="rs"),), (Field("x", INT), Field("y", STRING))
)


def unnest(
    batch: Batch, keep: tuple[int, ...], gives: tuple[int, ...], outer: bool, ordinality: bool
) -> Remembered:
    fields = (
        [INPUT[i] for i in keep]
        + [CALL.columns[i] for i in gives]
        + ([Field("n", BIGINT)] if ordinality else [])
    )
    operator = UnnestOperator(
        unnest_spec("id", "unnest", Schema(tuple(fields)), INPUT, CALL, keep, gives, outer, ordinality),
        JobOptions(),
    )
    opened(operator)
    out = Remembered()
    operator.on_batch(batch, 0, out)
    return out


def rows(seed: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)

    def pair() -> dict[str, Any] | None:
        return None if dice.random() < 0.2 else {"x": dice.choice([None, 1, 2]), "y": dice.choice("abc")}

    return [
        {"id": i, "rs": None if dice.random() < 0.2 else [pair() for _ in range(dice.randrange(4))]}
        for i in range(dice.randrange(1, 30))
    ]


def naive(given: list[dict[str, Any]], outer: bool) -> list[tuple[int, Any, Any, Any]]:
    """(row, x, y, number) of everything given."""
    found: list[tuple[int, Any, Any, Any]] = []
    for row, values in enumerate(given):
        elements = values["rs"] or []
        found += [(row, (e or {}).get("x"), (e or {}).get("y"), n) for n, e in enumerate(elements, 1)]
        if not elements and outer:
            found.append((row, None, None, None))
    return found


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("ordinality", [False, True])
@pytest.mark.parametrize(("keep", "gives"), [((0,), (0, 1)), ((), (1,)), ((0, 1), ()), ((1, 0), (1, 0))])
def test_beside_a_naive_reference(
    keep: tuple[int, ...], gives: tuple[int, ...], outer: bool, ordinality: bool
) -> None:
    for seed in range(12):
        given = rows(seed)
        arrow = pa.RecordBatch.from_pylist(
            [{}, *given][1:], schema=pa.schema([(f.name, to_arrow(f.type)) for f in INPUT])
        )
        weights = np.array([seed + i - 3 or 1 for i in range(len(given))])
        batch = Batch(
            pa.concat_batches([arrow, arrow]).slice(len(given)), weights, np.arange(len(given)) * 10, origin=2
        )
        out = unnest(batch, keep, gives, outer, ordinality)
        expected = naive(given, outer)
        found = [
            row for b in out.batches for row in zip(*(c.to_pylist() for c in b.rows.columns), strict=True)
        ]
        names = ("id", "rs")
        assert found == [
            (
                *(given[row][names[i]] for i in keep),
                *((x, y)[i] for i in gives),
                *((number,) if ordinality else ()),
            )
            for row, x, y, number in expected
        ] or not (keep or gives or ordinality)
        assert [w for b in out.batches for w in (b.weights if b.weights is not None else [])] == [
            weights[row] for row, *_ in expected
        ]
        assert [w for b in out.batches for w in (b.behind if b.behind is not None else [])] == [
            10 * row for row, *_ in expected
        ]
        assert all(b.origin == 2 for b in out.batches)
