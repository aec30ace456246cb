"""Exceptions of the user's code: coded, with the line of the program, and retried where they may pass."""

from __future__ import annotations

import json

import pytest

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.connectors.python.user_errors import users_own


def fails(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "passes"), [(ValueError("no such\nthing"), False), (ConnectionResetError("gone"), True)]
)
def test_the_message_has_the_line_and_says_whether_it_may_pass(error: Exception, passes: bool) -> None:
    with pytest.raises(PenstockError) as told, users_own("Python source x"):
        fails(error)
    assert told.value.code == "DAT-5602" and told.value.retriable is passes
    assert told.value.kind is (Kind.EXTERNAL if passes else Kind.USER)
    first = str(error).split("\n")[0]
    assert f"Python source x failed with {type(error).__name__}: {first} (line " in told.value.message
    assert "of test_user_errors.py)" in told.value.message


def test_the_line_is_the_users_although_a_library_has_raised() -> None:
    with pytest.raises(PenstockError) as told, users_own("Python sink x"):
        json.loads("{")
    assert "of test_user_errors.py)" in told.value.message
    assert "decoder.py" in str(told.value.detail)


def test_errors_of_penstock_stay() -> None:
    with pytest.raises(PenstockError) as told, users_own("Python sink x"):
        fails(PenstockError("DAT-4504", "a batch lacks column n"))
    assert told.value.code == "DAT-4504"
