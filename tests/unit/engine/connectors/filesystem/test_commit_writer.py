"""The commit log's writer: an entry per checkpoint, once every subtask has published, wherever a process dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.engine.api.operator import RestoredFrom
from penstock.engine.connectors.filesystem import commit_writer
from penstock.engine.connectors.filesystem.commit_log import (
    COMMITS,
    CommitLog,
)
from penstock.engine.operators.sink import SinkOperator
from tests.unit.engine.connectors.filesystem.commits import Died, barrier, dying, entries, logged, sinks


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
