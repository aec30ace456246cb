"""The owner of a split: stable, numbered ids go round the subtasks; the lag of a reader that has none."""

from __future__ import annotations

import pytest

from penstock.engine.api.source import lag_of, split_owner


@pytest.mark.parametrize("parallelism", [1, 2, 3, 4, 7])
def test_the_partitions_of_a_topic_go_round_the_subtasks(parallelism: int) -> None:
    owners = [split_owner(f"orders/{number}", parallelism) for number in range(4 * parallelism)]
    assert sorted(owners) == sorted(list(range(parallelism)) * 4)


def test_an_owner_never_changes() -> None:
    # written down: another hash would send splits of a running job to another subtask in a new version
    ids = ["orders/0", "orders/1", "payments-12", "a.csv", "", "12", "id\n3", "9" * 30]
    assert [split_owner(split_id, 5) for split_id in ids] == [0, 1, 3, 1, 0, 2, 0, 1]


def test_a_reader_without_a_lag_has_none() -> None:
    class Known:
        def lag(self) -> int:
            return 7

    assert lag_of(object()) is None  # type: ignore[arg-type]
    assert lag_of(Known()) == 7  # type: ignore[arg-type]
