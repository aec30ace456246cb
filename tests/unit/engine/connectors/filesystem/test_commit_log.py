"""The commit log of a file sink: every file named once, numbers that no two writers share, damage that is
reported.
"""

from __future__ import annotations

import errno
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.filesystem import commit_log
from penstock.engine.connectors.filesystem.commit_log import (
    COMMITS,
    Commit,
    CommitLog,
    CommittedFile,
    WrittenAs,
)
from tests.harness.reading import Taken
from tests.unit.engine.connectors.filesystem.commits import barrier, entries, logged, sinks

KIND = WrittenAs("parquet", "")


def test_an_entry_says_what_was_committed(tmp_path: Path) -> None:
    (operator,) = sinks(tmp_path, 1)
    barrier([operator], 1, 1)
    assert entries(tmp_path) == []
    operator.on_checkpoint_complete(1)
    operator.before_barrier(2, Taken())
    operator.on_checkpoint_complete(2)
    barrier([operator], 3, 3)
    operator.on_checkpoint_complete(3)
    standing, first, second = entries(tmp_path)
    assert (standing.files, first.checkpoint_id, second.checkpoint_id, first.rows, first.job_id) == (
        (),
        1,
        3,
        1,
        "job1",
    )
    (file,) = first.files
    data = (tmp_path / file.path).read_bytes()
    assert (file.length, file.crc32) == (len(data), zlib.crc32(data))
    assert logged(tmp_path) == [1, 3]


def test_what_stood_there_before_is_entry_0(tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    for name in ("old.parquet", "k=1/older.parquet", ".hidden.parquet", "notes.txt", "_x.parquet"):
        (tmp_path / name).write_bytes(b"x")
    (operator,) = sinks(tmp_path, 1)
    barrier([operator], 1, 1)
    operator.on_checkpoint_complete(1)
    standing, first = entries(tmp_path)
    assert [(file.path, file.rows) for file in standing.files] == [
        ("old.parquet", None),
        ("k=1/older.parquet", None),
    ]
    assert len(first.files) == 1


def test_writers_take_turns_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(path: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", none)
    barrier, wrote = threading.Barrier(4), []

    def write(writer: int) -> None:
        log = CommitLog(tmp_path, str(writer))
        barrier.wait()
        for number in range(10):
            wrote.append(
                log.append(Commit(-1, "", "", number, KIND, (CommittedFile(f"{writer}-{number}", 1, 1, 1),)))
            )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    files = [file.path for entry in entries(tmp_path) for file in entry.files]
    assert (
        sorted(files) == sorted(f"{writer}-{number}" for writer in range(4) for number in range(10))
        and len(wrote) == 40
    )


def test_two_writers_never_share_a_number(tmp_path: Path) -> None:
    one, other = CommitLog(tmp_path), CommitLog(tmp_path)
    one.begin(KIND, [])
    other.begin(KIND, [CommittedFile("x", 1, 1, 1)])
    assert (one.last(), other.last()) == (0, 0)
    for number, log in enumerate((one, other, other, one, other)):
        made = log.append(Commit(0, f"job{number}", "op", 1, KIND, (CommittedFile(f"f{number}", 1, 1, 1),)))
        assert made is not None and made.number == number + 1
    assert other.append(Commit(-1, "job0", "op", 1, KIND, (CommittedFile("f0", 1, 1, 1),))) is None


def test_damage_and_what_is_gone_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = CommitLog(tmp_path)
    with pytest.raises(PenstockError) as caught:
        log.read(3)
    assert caught.value.code == "DAT-4610"
    log.begin(KIND, [])
    path = next((tmp_path / COMMITS).glob("*.commit"))
    whole = path.read_bytes()
    for data in (whole[:-2], whole[:10], b"", whole.replace(b"parquet", b"parqust")):
        path.write_bytes(data)
        with pytest.raises(PenstockError) as caught:
            log.read(0)
        assert caught.value.code == "DAT-4611", data
    monkeypatch.setattr(commit_log, "VERSION", 2)
    path.write_bytes(whole)
    with pytest.raises(PenstockError) as caught:
        log.read(0)
    assert caught.value.code == "DAT-4612"
