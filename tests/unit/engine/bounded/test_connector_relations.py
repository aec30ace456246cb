"""Tables of files that are read whole while somebody replaces them: the rows are those of one moment."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import INT
from penstock.engine.api.operator import Services
from penstock.engine.bounded.connector_relations import _READINGS, own_batches, whole_table
from penstock.engine.connectors.filesystem.reader import FilesystemReader
from penstock.engine.formats.file_task import FileTask
from penstock.planner.sql_generator.query import ScannedTable
from tests.harness.reading import table_of

FORMATS = ("csv", "parquet")


def publish(path: Path, *, rows: int) -> None:
    """Put a table of so many rows in the place of the one before, each of them that number."""
    part = path.with_suffix(".part")
    if path.suffix == ".csv":
        part.write_text("id\n" + f"{rows}\n" * rows, encoding="utf-8")
    else:
        pq.write_table(pa.table({"id": pa.array([rows] * rows, pa.int32())}), part)
    part.rename(path)


def relation(path: Path) -> ScannedTable:
    kind = path.suffix[1:] or "csv"
    return ScannedTable(
        table_of({"id": INT}, {"connector": "filesystem", "path": str(path), "format": kind}), (0,)
    )


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    return [value for batch in batches for value in batch.column(0).to_pylist()]


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], Any]], None]:
    """Storage in which something happens just before a file is opened, or once its first rows are read."""

    def put(moment: str, happens: Callable[[], Any]) -> None:
        owner, names = (
            (FileTask, ("open_seekable", "open_stream"))
            if moment == "open"
            else (
                FilesystemReader,
                ("_complete",),
            )
        )
        for name in names:
            plain = getattr(owner, name)

            def after(*given: Any, plain: Callable[..., Any] = plain) -> Any:
                happens()
                return plain(*given)

            monkeypatch.setattr(owner, name, after)

    return put


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("moment", ["open", "read"])
@pytest.mark.parametrize("longer", [True, False])
def test_a_table_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, kind: str, moment: str, longer: bool, at: Any
) -> None:
    path, left = tmp_path / f"a.{kind}", [2]
    publish(path, rows=5)

    def replace() -> None:
        if left[0]:
            publish(path, rows=5 + left[0] if longer else left[0])
            left[0] -= 1

    at(moment, replace)
    expected = 6 if longer else 1
    assert numbers(whole_table(relation(path), Services())) == [expected] * expected
    assert not left[0], "it was replaced"


def test_of_several_files_one_that_goes_away_is_no_fault(tmp_path: Path, at: Any) -> None:
    for name in "ab":
        publish(tmp_path / f"{name}.csv", rows=2)
    at("open", lambda: (tmp_path / "a.csv").unlink(missing_ok=True))
    assert numbers(whole_table(relation(tmp_path), Services())) == [2, 2]


def test_a_file_that_comes_meanwhile_is_read_the_next_time(tmp_path: Path, at: Any) -> None:
    publish(tmp_path / "a.csv", rows=2)
    at("read", lambda: (tmp_path / "b.csv").exists() or publish(tmp_path / "b.csv", rows=3))
    assert numbers(whole_table(relation(tmp_path), Services())) == [2, 2]
    assert numbers(whole_table(relation(tmp_path), Services())) == [2, 2, 3, 3, 3]


def test_a_table_that_never_rests_is_refused_after_some_tries(tmp_path: Path, at: Any) -> None:
    path, tries = tmp_path / "a.csv", [0]
    publish(path, rows=1)

    def replace() -> None:
        tries[0] += 1
        publish(path, rows=1 + tries[0])

    at("read", replace)
    with pytest.raises(PenstockError, match="DAT-4107"):
        whole_table(relation(path), Services())
    assert tries[0] == _READINGS


def test_what_is_no_change_is_raised_at_once(tmp_path: Path, at: Any) -> None:
    path, tries = tmp_path / "a.csv", [0]
    path.write_text("id\nno number\n", encoding="utf-8")
    at("open", lambda: tries.__setitem__(0, tries[0] + 1))
    with pytest.raises(PenstockError, match="DAT-4201"):
        whole_table(relation(path), Services())
    once = tries[0]
    with pytest.raises(PenstockError, match="DAT-4201"):
        list(own_batches(relation(path), Services()))
    assert tries[0] == 2 * once


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_replaced_between_its_listing_and_its_opening_is_refused(
    tmp_path: Path, kind: str, at: Any
) -> None:
    path = tmp_path / f"a.{kind}"
    publish(path, rows=5)
    os.utime(path, (1, 1))
    at("open", lambda: publish(path, rows=5))
    with pytest.raises(PenstockError, match="DAT-4107"):
        list(own_batches(relation(path), Services()))
