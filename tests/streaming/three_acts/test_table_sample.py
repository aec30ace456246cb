"""TABLESAMPLE: the rows that a sample has are those of each run, of the backend and of rows that are updated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.test_emit import INPUT, ROWS, SPLITS, rows_of_e, session, submit

__all__ = ["session"]
GROUPS = "(SELECT k, d, count(*) AS n FROM e GROUP BY k, d) TABLESAMPLE (50 PERCENT)"
QUERIES = {
    "rows": "SELECT k, v, d, ts FROM e TABLESAMPLE BERNOULLI (40) REPEATABLE (7)",
    "buckets": "SELECT s.k, s.v, s.d, s.ts FROM e AS s TABLESAMPLE (BUCKET 2 OUT OF 4 ON k, v)",
    "groups that are updated": f"SELECT k, d, n FROM {GROUPS} AS g",
}


def answer(session: Session, text: str, mode: str = "automatic") -> Counter[tuple[Any, ...]]:
    session.settings.set("execution.runtime-mode", mode)
    try:
        rows = session.execute(text).final_rows(PATIENCE_S)
    finally:
        session.settings.set("execution.runtime-mode", "streaming")
    return Counter(zip(*rows.to_pydict().values(), strict=True))


@pytest.mark.parametrize("name", QUERIES)
def test_a_sample_is_the_same_in_three_acts(
    session: Session, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_e)
    text, straight, stopped = QUERIES[name], Folded(), Folded()
    expected = answer(session, text)
    assert expected
    run_to_end(*submit(session, text, 1, None), straight)
    assert straight.rows == expected
    run_and_stop(*submit(session, text, 2, tmp_path), stopped, ROWS * SPLITS // 3)
    run_to_end(*submit(session, text, 3, tmp_path), stopped)
    assert stopped.rows == expected


def test_a_share_is_about_that_share_and_a_seed_is_another_one(session: Session) -> None:
    rows = Counter(row for split in INPUT for row in split)
    first = answer(session, QUERIES["rows"])
    assert not first - rows
    assert 0.3 < first.total() / rows.total() < 0.5
    assert answer(session, QUERIES["rows"].replace("(7)", "(8)")) != first
    assert not answer(session, "SELECT * FROM e TABLESAMPLE (0 PERCENT)")
    assert answer(session, "SELECT * FROM e TABLESAMPLE (100%)") == rows


def test_buckets_are_a_partition_of_the_rows(session: Session) -> None:
    buckets = [answer(session, f"SELECT * FROM e TABLESAMPLE (BUCKET {i} OUT OF 3)") for i in (1, 2, 3)]
    assert all(buckets)
    assert sum(buckets, Counter()) == Counter(row for split in INPUT for row in split)


def test_rows_are_a_limit(session: Session) -> None:
    assert answer(session, "SELECT * FROM e TABLESAMPLE (5 ROWS) AS t", "streaming").total() == 5


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM e TABLESAMPLE (101 PERCENT)", "SQL-1012"),
        ("SELECT * FROM e TABLESAMPLE (1.5 ROWS)", "SQL-1012"),
        ("SELECT * FROM e TABLESAMPLE (BUCKET 4 OUT OF 3)", "SQL-1012"),
        ("SELECT * FROM e TABLESAMPLE (k PERCENT)", "SQL-1001"),
        ("SELECT * FROM (SELECT MAP[k, v] AS m FROM e) TABLESAMPLE (5 PERCENT)", "SQL-1601"),
    ],
)
def test_what_is_no_sample_is_refused(session: Session, text: str, code: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(text)
    assert refused.value.code == code
