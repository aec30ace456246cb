"""The file of named queries: sessions that save at once lose nothing."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.repl.meta_commands.query_file import changed_queries, names_of_queries, read_queries


def test_sessions_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "penstock" / "queries.toml"

    def save(number: int) -> None:
        with changed_queries(path) as queries:
            queries[f"q{number}"] = f'SELECT {number} AS "n"\n-- \''

    with ThreadPoolExecutor(8) as sessions:
        list(sessions.map(save, range(40)))
    assert read_queries(path) == {f"q{n}": f'SELECT {n} AS "n"\n-- \'' for n in range(40)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_error_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "queries.toml"
    with changed_queries(path) as queries:
        queries["a"] = "SELECT 1"
    with pytest.raises(KeyError), changed_queries(path) as queries:
        queries["b"] = "SELECT 2"
        del queries["c"]
    assert names_of_queries(path) == ["a"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    changing = changed_queries(tmp_path / "file" / "queries.toml")
    with pytest.raises(PenstockError, match=r"CLI-6131\]: cannot write .*queries\.toml"), changing:
        pass
