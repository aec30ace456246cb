"""A pytest plugin that plants the bug the environment names before any test is collected."""

from __future__ import annotations

import os

from tests.mutation.planted import MUTANTS


def pytest_configure() -> None:
    next(mutant for mutant in MUTANTS if mutant.name == os.environ["PENSTOCK_MUTANT"]).plant()
