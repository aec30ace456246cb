"""Writers of one table: one lock for each table, and errors that say who was ahead."""

from __future__ import annotations

from penstock.engine.connectors.lakehouse.commit_conflicts import (
    commit_lock,
    conflicts_persist,
    superseded,
)


def test_one_lock_for_each_table() -> None:
    assert commit_lock("/a") is commit_lock("/a")
    assert commit_lock("/a") is not commit_lock("/b")
    with commit_lock("/a"), commit_lock("/a"):
        pass


def test_errors_say_who_was_ahead() -> None:
    lost = superseded("the table t", 3, 2)
    assert (lost.code, lost.retriable) == ("STA-3504", False) and "attempt 3 writes to the table t" in str(
        lost
    )
    again = conflicts_persist("the table t", ValueError("raced"))
    assert (again.code, again.retriable, again.detail) == ("DAT-5313", True, "raced")
