"""The commit log of a file sink: every file named once, the files of a checkpoint in one entry, wherever a
process dies.
"""

from __future__ import annotations

import errno
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.operator import RestoredFrom
from penstock.engine.connectors.filesystem import commit_log, commit_writer
from penstock.engine.connectors.filesystem.commit_log import (
    COMMITS,
    Commit,
    CommitLog,
    CommittedFile,
    WrittenAs,
)
from penstock.engine.operators.sink import SinkOperator
from tests.harness.reading import Taken
from tests.unit.engine.connectors.filesystem.test_sink import batch, ids, sink

KIND = WrittenAs("parquet", "")
STEPS = (
    (os, "fsync"),
    (Path, "hardlink_to"),
    (Path, "unlink"),
    (Path, "replace"),
    (Path, "rename"),
    (Path, "write_text"),
)


class Died(BaseException):
    """The process is no more."""


@contextmanager
def dying(after: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Die at one of the steps that change what is on the disk; the list counts them."""
    count = [0]

    def step(call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*words: Any, **more: Any) -> Any:
            count[0] += 1
            if count[0] > after:
                raise Died
            return call(*words, **more)

        return stepped

    with monkeypatch.context() as patched:
        for owner, name in STEPS:
            patched.setattr(owner, name, step(getattr(owner, name)))
        yield count


def entries(root: Path) -> list[Commit]:
    log = CommitLog(root)
    return [log.read(number) for number in log.numbers()]


def logged(root: Path) -> list[int]:
    """Return the ids in the files the log names, in its order."""
    return [
        value
        for entry in entries(root)
        for file in entry.files
        for value in pq.read_table(root / file.path).column("id").to_pylist()
    ]


def sinks(
    root: Path, parallelism: int, owner: str = "job1", restored: RestoredFrom | None = None
) -> list[SinkOperator]:
    return [
        sink(ids(root), subtask=subtask, parallelism=parallelism, owner=owner, restored=restored)
        for subtask in range(parallelism)
    ]


def barrier(operators: list[SinkOperator], checkpoint: int, first: int) -> list[dict[str, Any]]:
    """Give every subtask but the last a row, from a number on; return what the checkpoint holds."""
    for subtask, operator in enumerate(operators[:-1] or operators):
        operator.on_batch(batch(first + subtask), 0, Taken())
    for operator in operators:
        operator.before_barrier(checkpoint, Taken())
    return [item for operator in operators for item in operator.snapshot_items()]


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


def test_a_checkpoint_is_there_when_all_subtasks_have_published(tmp_path: Path) -> None:
    operators = sinks(tmp_path, 3)
    barrier(operators, 1, 1)
    for operator in operators[:2]:
        operator.on_checkpoint_complete(1)
        assert logged(tmp_path) == []
    operators[2].on_checkpoint_complete(1)
    assert logged(tmp_path) == [1, 2] and len(entries(tmp_path)) == 2
    for operator in operators:
        operator.close()
    assert not (tmp_path / COMMITS / "under-way").exists()


def finished(
    root: Path, operators: list[SinkOperator], pending: list[dict[str, Any]], checkpoint: int
) -> None:
    """Go on as other processes do, from a checkpoint, with one more."""
    for operator in operators:
        operator.restore_items(pending)
    barrier(operators, checkpoint, 100)
    for operator in reversed(operators):
        operator.on_checkpoint_complete(checkpoint)
    for operator in operators:
        operator.close()
    assert not (root / COMMITS / "under-way").exists()
    assert not list((root / COMMITS).glob(".*.tmp")), "of an entry in whose writing the process died"


@pytest.mark.parametrize(("parallelism", "after"), [(1, 2), (2, 1), (3, 2)])
def test_wherever_a_process_dies(
    parallelism: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tried(tmp_path, parallelism, after, monkeypatch) == (0, True)


def tried(
    place: Path, parallelism: int, after: int, monkeypatch: pytest.MonkeyPatch, most_wrong: int = 100
) -> tuple[int, bool]:
    """Die at each step of two checkpoints' commits, then go on at another parallelism; return how often
    the log was wrong, and if there were many.
    """
    wrong, step, went_through = 0, 0, False
    while not went_through and wrong < most_wrong:
        root = place / str(step)
        operators = sinks(root, parallelism)
        pending, last = barrier(operators, 1, 1), 1
        with dying(step, monkeypatch) as count:
            try:
                operators[0].on_checkpoint_complete(1)
                pending, last = barrier(operators, 2, 10), 2
                for operator in operators:
                    operator.on_checkpoint_complete(2)
                went_through = True
            except Died:
                went_through = False
        finished(root, sinks(root, after), pending, last + 1)
        most = max(1, parallelism - 1)
        expected = sorted(
            [
                *range(1, 1 + most),
                *(range(10, 10 + most) if last == 2 else ()),
                *range(100, 100 + max(1, after - 1)),
            ]
        )
        found = logged(root)
        wrong += sorted(found) != expected or len({entry.checkpoint_id for entry in entries(root)}) != len(
            entries(root)
        )
        step += 1
    return wrong, count[0] > 12


def test_what_is_committed_again_is_not_forgotten_by_a_second_death(tmp_path: Path) -> None:
    """The process dies behind its first checkpoint's commit, and the next one when its own first
    checkpoint is durable: before either is logged.
    """
    (operator,) = sinks(tmp_path, 1)
    pending = barrier([operator], 1, 1)
    operator._writer.commit(pending[0]["items"])
    (operator,) = sinks(tmp_path, 1, restored=RestoredFrom("job1", 1))
    operator.restore_items(pending)
    pending = barrier([operator], 2, 2)
    finished(tmp_path, sinks(tmp_path, 1, restored=RestoredFrom("job1", 2)), pending, 3)
    assert sorted(logged(tmp_path)) == [1, 2, 100]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_copy_of_a_job_logs_what_the_job_it_was_copied_from_had_published(
    tmp_path: Path, parallelism: int
) -> None:
    """One subtask had published its part of a checkpoint, the others had not; the job lives, and comes to
    log it as well.
    """
    job = sinks(tmp_path, 3)
    barrier(job, 1, 1)
    job[0].on_checkpoint_complete(1)
    pending = barrier(job, 2, 10)
    copy = sinks(tmp_path, parallelism, "copy", RestoredFrom("job1", 2))
    for operator in copy:
        operator.restore_items(pending)
    barrier(copy, 3, 100)
    for operator in copy:
        operator.on_checkpoint_complete(3)
    for operator in job:
        operator.on_checkpoint_complete(2)
    for operator in (*copy, *job):
        operator.close()
    assert sorted(logged(tmp_path)) == [1, 2, 10, 11, 100]
    assert not (tmp_path / COMMITS / "under-way").exists()


def test_a_log_that_trusts_what_it_is_told_names_files_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: without looking for files in the entries there are, what is committed again is named
    again.
    """
    monkeypatch.setattr(CommitLog, "_backwards", lambda self, last, seen: iter(()))
    assert tried(tmp_path, 2, 2, monkeypatch, 1)[0] > 0


def test_a_subtask_that_does_not_wait_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: entries written before all have published hold parts of a checkpoint."""
    monkeypatch.setattr(commit_writer.SinkCommits, "_completed_checkpoint", lambda self: 1 << 40)
    assert tried(tmp_path, 3, 2, monkeypatch, 1)[0] > 0


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
