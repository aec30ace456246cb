"""The decorators of Python sources and sinks: what they take, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.python_connectors import ProgramConnectors, arguments_of


def two(split: str, position: Any) -> Any:
    return []


def three(split: str, position: Any, options: Any) -> Any:
    return []


def one(split: str) -> Any:
    return []


class Half:
    def commit(self, writer: str, epoch: int, batches: Any) -> None:
        """Store."""


def test_functions_take_the_options_or_not() -> None:
    assert penstock.source(two).name == "two" and penstock.source(name="x")(three).name == "x"
    assert arguments_of(two, 1, 2, 3) == (1, 2) and arguments_of(three, 1, 2, 3) == (1, 2, 3)
    assert penstock.source(two)("a", None) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: penstock.source(one),
        lambda: penstock.source(7),
        lambda: penstock.source(splits=two)(three),
        lambda: penstock.sink(Half),
        lambda: ProgramConnectors().register(two, None),  # type: ignore[arg-type]  # what a user may do
    ],
)
def test_what_is_no_connector(make: Any) -> None:
    with pytest.raises(PenstockError, match="DAT-5605"):
        make()
