"""Work in a thread: its result once, its error, and what becomes of a result nobody takes."""

from __future__ import annotations

import threading

import pytest

from penstock.engine.connectors.postgres_cdc.background import Background
from tests.harness.patience import await_that


def test_the_result_is_returned_once_it_is_there() -> None:
    go, dropped = threading.Event(), list[int]()
    work = Background(lambda: (go.wait(), 7)[1], dropped.append, "t")
    assert work.take() is None
    go.set()
    found: list[int | None] = []
    await_that(lambda: found.append(work.take()) or found[-1])
    assert found[-1] == 7 and work.take() is None and not dropped


def test_what_the_work_raises_is_raised_where_it_is_taken() -> None:
    def fails() -> int:
        raise ValueError("no")

    work = Background(fails, lambda _: None, "t")
    with pytest.raises(ValueError, match="no"):
        await_that(work.take)


@pytest.mark.parametrize("early", [True, False])
def test_a_result_that_nobody_takes_is_discarded(early: bool) -> None:
    go, dropped = threading.Event(), list[int]()
    work = Background(lambda: (go.wait(), 7)[1], dropped.append, "t")
    if early:
        work.drop()
        go.set()
    else:
        go.set()
        await_that(lambda: work._result)
        work.drop()
    await_that(lambda: dropped == [7])
