"""BIT_AND, BIT_OR and BIT_XOR by slot, united under inserts and counted bit by bit under retraction, against
the operators of Python.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.state.aggregates.bitwise import CountedBits, UnitedBits
from tests.harness.aggregates import Reference, add_rows, follows_its_reference

OPERATORS = {"bit_and": operator.and_, "bit_or": operator.or_, "bit_xor": operator.xor}
WORDS = [0, 1, 6, -1, -(2**63), 2**63 - 1]


def read(part: Any, slots: np.ndarray) -> dict[str, pa.Array]:
    return {name: part.of(name, part.state(slots), pa.int64()) for name in OPERATORS}


def expected(values: list[int]) -> dict[str, int | None]:
    return {name: functools.reduce(one, values) if values else None for name, one in OPERATORS.items()}


UNITED = Reference(UnitedBits, pa.int64(), WORDS, read, expected, retract=False)
COUNTED = Reference(CountedBits, pa.int64(), WORDS, read, expected)


@pytest.mark.parametrize("reference", [UNITED, COUNTED], ids=["inserts", "retractions"])
def test_bits_are_those_of_the_operators_folded_over_the_values(reference: Reference) -> None:
    follows_its_reference(reference)


@pytest.mark.parametrize("make", [UnitedBits, CountedBits])
def test_a_narrow_type_gets_its_own_width(make: type[UnitedBits] | type[CountedBits]) -> None:
    part = make()
    part.reserve(1)
    add_rows(part, pa.int8(), [(0, -1, 1), (0, 5, 1)])
    state = part.state(np.zeros(1, np.int64))
    for name, value in (("bit_and", 5), ("bit_or", -1), ("bit_xor", -6)):
        column = part.of(name, state, pa.int8())
        assert column.type == pa.int8() and column.to_pylist() == [value]


def test_a_row_of_an_even_weight_cancels_in_xor() -> None:
    part = UnitedBits()
    part.reserve(1)
    add_rows(part, pa.int64(), [(0, 7, 2), (0, 1, 3)])
    assert part.of("bit_xor", part.state(np.zeros(1, np.int64)), pa.int64()).to_pylist() == [1]
