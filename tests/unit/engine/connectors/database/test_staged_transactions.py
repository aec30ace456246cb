"""Staged transactions: each is moved once whoever commits it and how often, an attempt that was taken over from
is fenced off, and nobody touches what another job staged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.failpoints import armed
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import Committable, Origin, SinkRequest
from penstock.engine.connectors.database.database import WritableDatabase
from penstock.engine.connectors.database.staged_transactions import StagedTransactions
from tests.unit.engine.connectors.database.files import SCHEMA, rows_in, table, writable


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WritableDatabase]:
    made = writable(tmp_path / "f", request.param, key=False)
    yield made
    made.close()


def staging(
    database: WritableDatabase,
    owner: str = "a",
    *,
    subtask: int = 0,
    parallelism: int = 1,
    origin: Origin | None = None,
) -> StagedTransactions:
    request = SinkRequest(
        table(Path("f"), "sqlite"),
        SCHEMA,
        None,
        "op",
        "job",
        subtask,
        parallelism,
        Services(),
        owner=owner,
        origin=origin,
    )
    return StagedTransactions(database, request)


def rows(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(values, pa.int64()), "v": [str(value) for value in values]})


def of_checkpoint(checkpoint: int, *items: Committable) -> list[Committable]:
    return [{**item, "checkpoint": checkpoint} for item in items]


def commit(database: WritableDatabase, transactions: StagedTransactions, items: list[Committable]) -> int:
    return transactions.commit(items, lambda batch: database.insert("out", batch))


def staged(database: WritableDatabase) -> list[tuple[int, ...]]:
    found = database.run("SELECT subtask, number FROM penstock_staged ORDER BY subtask, number")
    return [(int(a), int(b)) for a, b in found]


def keys_in(database: WritableDatabase) -> list[int | None]:
    return [key for key, _ in rows_in(database)]


def test_rows_are_in_the_table_once_they_are_committed_and_once(database: WritableDatabase) -> None:
    transactions = staging(database)
    transactions.take_over([])
    items = of_checkpoint(1, transactions.stage(rows(1, 2)), transactions.stage(rows(3)))
    assert keys_in(database) == [] and len(staged(database)) == 2
    assert commit(database, transactions, items) == 3
    assert commit(database, transactions, items) == 0
    assert keys_in(database) == [1, 2, 3] and staged(database) == []


def test_a_commit_that_fails_moves_nothing_and_may_be_done_again(database: WritableDatabase) -> None:
    transactions = staging(database)
    transactions.take_over([])
    items = of_checkpoint(1, transactions.stage(rows(1)), transactions.stage(rows(2)))

    def fail(point: str) -> None:
        raise ZeroDivisionError

    with armed({"S5": fail}), pytest.raises(ZeroDivisionError):
        commit(database, transactions, items)
    assert keys_in(database) == [] and len(staged(database)) == 2
    assert commit(database, transactions, items) == 2 and keys_in(database) == [1, 2]


def test_an_attempt_that_was_taken_over_from_stages_and_commits_nothing(database: WritableDatabase) -> None:
    old, new = staging(database), staging(database)
    old.take_over([])
    pending = of_checkpoint(1, old.stage(rows(1)))
    old.stage(rows(2))
    new.take_over(pending)
    assert len(staged(database)) == 1, "what no checkpoint holds is deleted"
    for act in (lambda: old.stage(rows(3)), lambda: commit(database, old, pending)):
        with pytest.raises(PenstockError, match="STA-3504"):
            act()
    assert commit(database, new, pending) == 1
    later = of_checkpoint(2, new.stage(rows(4)))
    assert later[0]["number"] > pending[0]["number"], "no number is given out again"
    commit(database, new, later)
    assert keys_in(database) == [1, 4]


def test_after_a_rescale_subtasks_share_what_was_staged(database: WritableDatabase) -> None:
    before = [staging(database, subtask=i, parallelism=3) for i in range(3)]
    pending = []
    for number, one in enumerate(before):
        one.take_over([])
        pending += of_checkpoint(1, one.stage(rows(number)))
        one.stage(rows(100 + number))
    after = [staging(database, subtask=i, parallelism=2) for i in range(2)]
    for one in after:
        one.take_over(pending)
    assert len(staged(database)) == 3
    for number, item in enumerate(pending):
        commit(database, after[number % 2], [item])
    assert keys_in(database) == [0, 1, 2] and staged(database) == []


def test_a_copy_of_a_job_commits_what_it_began_with_and_deletes_nothing(database: WritableDatabase) -> None:
    first = staging(database, "a")
    first.take_over([])
    pending = of_checkpoint(1, first.stage(rows(1)))
    later = of_checkpoint(2, first.stage(rows(2)))
    copy = staging(database, "b", origin=Origin("a", "op", 1))
    copy.take_over(pending)
    own = of_checkpoint(2, copy.stage(rows(3)))
    assert own[0]["number"] == pending[0]["number"], "the numbers of two jobs are of no matter to each other"
    copy.discard(pending)
    assert len(staged(database)) == 3, "they are the other job's"
    copy.discard(own)
    assert len(staged(database)) == 2
    assert commit(database, copy, pending) == 1 and commit(database, first, pending) == 0
    assert commit(database, first, later) == 1, "the first job goes on"
    assert keys_in(database) == [1, 2]


def test_rows_that_somebody_deleted_are_missed(database: WritableDatabase) -> None:
    transactions = staging(database)
    transactions.take_over([])
    items = of_checkpoint(7, transactions.stage(rows(1)))
    transactions.discard(items)
    with pytest.raises(PenstockError, match="STA-3503.*checkpoint 7"):  # noqa: RUF043
        commit(database, transactions, items)


@pytest.mark.parametrize(("attempts", "commits", "left"), [(1, True, 0), (1, False, 1), (2, True, 1)])
def test_the_record_of_a_subtask_is_deleted_when_nobody_can_need_it(
    database: WritableDatabase, attempts: int, commits: bool, left: int
) -> None:
    for _ in range(attempts):
        transactions = staging(database)
        transactions.take_over([])
    items = of_checkpoint(1, transactions.stage(rows(1)))
    if commits:
        commit(database, transactions, items)
    transactions.retire()
    assert database.run("SELECT COUNT(*) FROM penstock_epochs") == [(left,)]


def test_rows_that_a_later_commit_has_passed_over_are_not_lost_in_silence(database: WritableDatabase) -> None:
    transactions = staging(database)
    transactions.take_over([])
    first, second = (of_checkpoint(n, transactions.stage(rows(n))) for n in (1, 2))
    assert commit(database, transactions, second) == 1
    with pytest.raises(PenstockError) as refused:
        commit(database, transactions, first)
    assert refused.value.code == "STA-3506"
