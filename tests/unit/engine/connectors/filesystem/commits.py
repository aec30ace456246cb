"""What tests of the commit log share: sinks of several subtasks, what the log names, and a process that dies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.engine.api.operator import RestoredFrom
from penstock.engine.connectors.filesystem.commit_log import (
    Commit,
    CommitLog,
)
from penstock.engine.operators.sink import SinkOperator
from tests.harness.reading import Taken
from tests.unit.engine.connectors.filesystem.test_sink import batch, ids, sink

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
