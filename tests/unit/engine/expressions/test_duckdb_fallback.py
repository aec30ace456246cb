"""Kernels of DuckDB share a database, whichever slot runs them, and open another when it is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest

from penstock.engine.expressions import duckdb_fallback
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel

UPPER = ("upper({0})", pa.string())


def test_kernels_share_one_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_fallback, "_SHARED", duckdb_fallback._Shared())
    opened, connect = [], duckdb.connect
    monkeypatch.setattr(
        duckdb, "connect", lambda *words, **named: opened.append(1) or connect(*words, **named)
    )
    texts = [pa.array([f"a{number}", None]) for number in range(20)]
    with ThreadPoolExecutor(4) as slots:
        answers = list(slots.map(lambda text: duckdb_kernel(*UPPER)(text).to_pylist(), texts))
    assert answers == [[f"A{number}", None] for number in range(20)]
    assert opened == [1]


def test_a_database_that_is_lost_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> pa.Table:
        raise duckdb.FatalException(
            "FATAL Error: database has been invalidated because of a previous fatal error"
        )

    shared = duckdb_fallback._Shared()
    shared._database = SimpleNamespace(cursor=lambda: SimpleNamespace(from_arrow=lost))
    monkeypatch.setattr(duckdb_fallback, "_SHARED", shared)
    assert duckdb_kernel(*UPPER)(pa.array(["a"])).to_pylist() == ["A"]
