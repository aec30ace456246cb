"""A few of the planted bugs, those that are caught at once; ``python -m tests.mutation`` runs all."""

from __future__ import annotations

import pytest

from tests.mutation.caught import caught
from tests.mutation.planted import MUTANTS, Mutant


@pytest.mark.parametrize(
    "mutant", [mutant for mutant in MUTANTS if mutant.quick], ids=lambda mutant: mutant.name
)
def test_a_planted_bug_is_caught(mutant: Mutant) -> None:
    found, told = caught(mutant)
    assert found, told
