"""Locks of tables: one for each, which its thread may take again."""

from __future__ import annotations

from penstock.engine.connectors.lakehouse.commit_locks import commit_lock


def test_one_lock_for_each_table() -> None:
    assert commit_lock("/a") is commit_lock("/a")
    assert commit_lock("/a") is not commit_lock("/b")
    with commit_lock("/a"), commit_lock("/a"):
        pass
