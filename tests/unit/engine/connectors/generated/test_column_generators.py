"""Generated columns: each value follows from seed, name and row number, lies in its range, and what cannot be
made is refused.
"""

from __future__ import annotations

from decimal import Decimal as Number
from typing import Any

import numpy as np
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, DataType, Decimal, Timestamp
from penstock.engine.connectors.generated.column_generators import FieldPlan, mix, plan_field
from tests.harness.reading import table_of

RANDOM: dict[str, tuple[DataType, dict[str, str], Any, Any]] = {
    "integers": (INT, {"min": "-3", "max": "3"}, -3, 3),
    "one value": (BIGINT, {"min": "5", "max": "5"}, 5, 5),
    "doubles": (DOUBLE, {"min": "-1", "max": "2"}, -1.0, 2.0),
    "decimals": (Decimal(20, 2), {"min": "-1.50", "max": "9.99"}, Number("-1.50"), Number("9.99")),
    "a decimal without digits before the point": (Decimal(3, 3), {}, Number("0"), Number("0")),
    "truths": (BOOLEAN, {}, False, True),
}


def plan(of_type: DataType, seed: int = 1, name: str = "v", **options: str) -> FieldPlan:
    table = table_of(
        {name: of_type},
        {"connector": "datagen", "seed": str(seed)}
        | {f"fields.{name}.{key}": value for key, value in options.items()},
    )
    return plan_field(table, table.schema[0])


def values(made: FieldPlan, first: int = 0, count: int = 400, now_us: int = 0) -> list[Any]:
    column = made.make(np.arange(first, first + count, dtype=np.uint64), now_us)
    column.validate(full=True)
    return column.to_pylist()


@pytest.mark.parametrize("what", RANDOM)
def test_random_values_lie_in_their_range_and_reach_its_ends(what: str) -> None:
    kind, options, low, high = RANDOM[what]
    found = values(plan(kind, **options))
    assert all(low <= value <= high for value in found)
    if kind in (INT, BIGINT, BOOLEAN):
        assert {low, high} <= set(found)


@pytest.mark.parametrize("kind", [INT, DOUBLE, STRING, DATE, BOOLEAN, Timestamp(3)], ids=str)
def test_a_row_has_its_value_whatever_is_made_with_it(kind: DataType) -> None:
    options = {"kind": "random"} if isinstance(kind, Timestamp) else {}
    whole = values(plan(kind, **options))
    assert [value for i in range(0, 400, 50) for value in values(plan(kind, **options), i, 50)] == whole
    assert values(plan(kind, seed=2, **options)) != whole
    assert values(plan(kind, name="w", **options)) != whole


def test_a_sequence_begins_steps_and_ends() -> None:
    made = plan(INT, start="10", end="13")
    assert made.rows == 4 and values(made, count=4) == [10, 11, 12, 13]
    timed = plan(Timestamp(3), start="2024-01-01 00:00:00", step="90 s")
    assert [str(value) for value in values(timed, first=1, count=2)] == [
        "2024-01-01 00:01:30",
        "2024-01-01 00:03:00",
    ]
    assert plan(INT, start="0").rows is None
    texts = plan(STRING, kind="sequence", start="8")
    assert values(texts, count=3) == ["8", "9", "10"]


def test_a_choice_is_of_the_given_values_and_strings_have_their_length() -> None:
    assert set(values(plan(INT, values="1, 5"))) == {1, 5}
    for length in (0, 1, 12, 13, 40):
        found = values(plan(STRING, length=str(length)))
        assert {len(value) for value in found} == {length} and (length < 12 or len(set(found)) == len(found))


def test_the_time_of_generation_is_the_clock_s() -> None:
    found = plan(Timestamp(3)).make(np.arange(2, dtype=np.uint64), 5_000)
    assert [value.value for value in found] == [5_000, 5_000]


@pytest.mark.parametrize(
    ("kind", "options", "code"),
    [
        (INT, {"min": "3", "max": "2"}, "SQL-1505"),
        (INT, {"min": "x"}, "SQL-1505"),
        (BIGINT, {"min": str(-(2**63)), "max": str(2**63 - 1)}, "SQL-1505"),
        (INT, {"values": "1,x"}, "SQL-1505"),
        (DOUBLE, {"start": "1"}, "SQL-1509"),
        (INT, {"kind": "now"}, "SQL-1509"),
    ],
    ids=str,
)
def test_what_cannot_be_made_is_refused(kind: DataType, options: dict[str, str], code: str) -> None:
    with pytest.raises(PenstockError, match=code):
        plan(kind, **options)


def test_neighbours_are_mixed_apart() -> None:
    """About half of the bits of two neighbours differ."""
    words = mix(np.arange(1_000, dtype=np.uint64))
    bits = [bin(int(a ^ b)).count("1") for a, b in zip(words[1:], words[:-1], strict=True)]
    assert 31 < np.mean(bits) < 33 and min(bits) > 10
