"""How long tests are: brief in ``make test``, at length in ``make soak``, which sets ``AT_LENGTH=1``.

A case that is only for ``make soak`` has the mark ``at_length``, and ``tests/conftest.py`` leaves it out
otherwise. A test that does more there has the mark ``longer``. ``make soak`` runs both kinds. docs/TESTING.md
lists them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

import pytest

AT_LENGTH = os.environ.get("AT_LENGTH") == "1"
T = TypeVar("T")


def of_length(brief: T, long: T) -> T:
    """Return what this run shall use; the test wants the mark ``longer``."""
    return long if AT_LENGTH else brief


def briefly(cases: Iterable[Any], brief: Collection[Any]) -> list[Any]:
    """Return the cases of a test; those that are not among ``brief`` are run at length only.

    A case is a name, or a tuple of values. AssertionError for a brief case that is not there.
    """
    told = list(cases)
    assert all(case in told for case in brief), "a brief case has another name now"
    return [
        case
        if case in brief
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.at_length)
        for case in told
    ]
