"""Windows over the last row of a key: they never close, and a row that another replaces leaves its window. A
naive reading of the rows says what is in them at the end, DuckDB says the same of the text.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.test_emit import INPUT, ROWS, SPLITS, _windows, rows_of_e, session, submit

__all__ = ["session"]
# v, d and ts together are one order of all rows, so that the last one is the same in every run
LAST = "(SELECT k, v, d, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, d ORDER BY ts DESC NULLS LAST, v DESC NULLS LAST) AS n FROM e) WHERE n = 1)"
TABLES = {
    "tumble": f"TUMBLE(TABLE {LAST}, DESCRIPTOR(ts), INTERVAL '10' SECONDS)",
    "hop": f"HOP(TABLE {LAST}, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS)",
    "cumulate": f"CUMULATE(TABLE {LAST}, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS)",
    "session": f"SESSION(TABLE {LAST}, DESCRIPTOR(ts), INTERVAL '1' SECONDS)",
    "sessions of keys": f"SESSION(TABLE {LAST} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '4' SECONDS)",
}
_GAPS = {"session": (1, None), "sessions of keys": (4, 0)}
OF_GROUPS = f"SELECT TUMBLE_START(ts, INTERVAL '10' SECOND), TUMBLE_END(ts, INTERVAL '10' SECOND), count(*), sum(v) FROM {LAST} GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"


def _last() -> list[tuple[Any, ...]]:
    best: dict[Any, tuple[Any, ...]] = {}
    for row in (row for split in INPUT for row in split):
        rank = (row[3] is not None, row[3], row[1] is not None, row[1] or 0)
        key = (row[0], row[2])
        if key not in best or rank > best[key][0]:
            best[key] = (rank, row)
    return [row for _, row in best.values()]


def _sessions(rows: list[tuple[Any, ...]], gap_s: int, key: int | None) -> list[tuple[datetime, datetime]]:
    """The session of each row."""
    gap, found = timedelta(seconds=gap_s), []
    for row in rows:
        times = {other[3] for other in rows if key is None or other[key] == row[key]}
        first = last = row[3]
        while near := [t for t in times if first - gap <= t < first or last < t <= last + gap]:
            first, last = min(first, *near), max(last, *near)
        found.append((first, last + gap))
    return found


def _answer(kind: str) -> Counter[tuple[Any, ...]]:
    groups: dict[Any, list[Any]] = {}
    rows = [row for row in _last() if row[3] is not None]
    if kind in _GAPS:
        windows = [[window] for window in _sessions(rows, *_GAPS[kind])]
    else:
        windows = [_windows(kind, row[3]) for row in rows]
    for row, own in zip(rows, windows, strict=True):
        for window in own:
            # sessions of two keys may have the same bounds
            groups.setdefault((window, row[0] if kind == "sessions of keys" else None), []).append(row[1])
    return Counter(
        (
            *window,
            len(values),
            sum(v for v in values if v is not None) if any(v is not None for v in values) else None,
        )
        for (window, _), values in groups.items()
    )


def _query(kind: str) -> str:
    if kind == "sessions of keys":
        return f"SELECT window_start, window_end, count(*), sum(v) FROM {TABLES[kind]} GROUP BY k, window_start, window_end"
    return f"SELECT window_start, window_end, count(*), sum(v) FROM {TABLES[kind]} GROUP BY window_start, window_end"


OF_SESSION_GROUPS = f"SELECT SESSION_START(ts, INTERVAL '4' SECOND), SESSION_END(ts, INTERVAL '4' SECOND), count(*), sum(v) FROM {LAST} GROUP BY k, SESSION(ts, INTERVAL '4' SECOND)"
CASES = {
    **{kind: (_query(kind), kind) for kind in TABLES},
    "groups": (OF_GROUPS, "tumble"),
    "session groups": (OF_SESSION_GROUPS, "sessions of keys"),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_replaced_row_leaves_its_window_in_three_acts(
    session: Session, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_e)
    text, expected = CASES[kind][0], _answer(CASES[kind][1])
    straight, stopped = Folded(), Folded()
    run_to_end(*submit(session, text, 1, None), straight)
    assert straight.rows == expected
    run_and_stop(*submit(session, text, 2, tmp_path), stopped, ROWS * SPLITS // 3)
    run_to_end(*submit(session, text, 3, tmp_path), stopped)
    assert stopped.rows == expected


JOINED = "(SELECT a.k, a.v, a.ts, b.m FROM e AS a LEFT JOIN (SELECT k, MAX(v) AS m FROM e GROUP BY k) AS b ON a.k = b.k AND a.v = b.m)"
OF_JOINED = f"SELECT window_start, window_end, count(*), sum(m) FROM TUMBLE(TABLE {JOINED}, DESCRIPTOR(ts), INTERVAL '10' SECONDS) GROUP BY window_start, window_end"


def _answer_of_joined() -> Counter[tuple[Any, ...]]:
    rows = [row for split in INPUT for row in split]
    best: dict[int, int] = {}
    for k, v, _, _ in rows:
        if k is not None and v is not None:
            best[k] = max(v, best.get(k, v))
    groups: dict[Any, list[Any]] = {}
    for k, v, _, ts in rows:
        for window in [] if ts is None else _windows("tumble", ts):
            groups.setdefault(window, []).append(v if k is not None and best.get(k) == v else None)
    return Counter(
        (*window, len(found), sum(m for m in found if m is not None) if set(found) != {None} else None)
        for window, found in groups.items()
    )


def test_rows_of_an_outer_join_that_is_updated_are_in_windows_too(session: Session, tmp_path: Path) -> None:
    """The join passes the time on in its plan, but its rows come long after it: no window may close."""
    straight = Folded()
    run_to_end(*submit(session, OF_JOINED, 2, None), straight)
    assert straight.rows == _answer_of_joined()


@pytest.mark.parametrize("kind", TABLES)
def test_a_backend_gives_the_same(session: Session, kind: str) -> None:
    session.settings.set("execution.runtime-mode", "automatic")
    try:
        rows = session.execute(_query(kind)).final_rows(PATIENCE_S)
    finally:
        session.settings.set("execution.runtime-mode", "streaming")
    assert Counter(zip(*rows.to_pydict().values(), strict=True)) == _answer(kind)


def test_what_is_above_such_windows_updates(session: Session) -> None:
    best = f"SELECT window_end, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC NULLS LAST, d) AS best FROM {TABLES['tumble']}) WHERE best = 1"
    rows = session.execute(best).final_rows(PATIENCE_S)
    most: dict[Any, int] = {}
    for _, v, _, ts in _last():
        if ts is not None and v is not None:
            end = _windows("tumble", ts)[0][1]
            most[end] = max(v, most.get(end, v))
    assert dict(zip(*rows.to_pydict().values(), strict=True)) == most
    assert not session.execute(best).shape.insert_only


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        (_query("tumble") + " EMIT ON WINDOW CLOSE", "SQL-1711", "or leave EMIT out"),
        (_query("tumble") + " EMIT CHANGES WITH LATENESS INTERVAL '1' HOUR", "SQL-1710", "leave WITH LATENESS out"),
        (_query("session") + " EMIT ON WINDOW CLOSE", "SQL-1711", "or leave EMIT out"),
        ("SELECT * FROM TUMBLE(TABLE (SELECT a.ts AS t FROM e AS a JOIN e AS b ON a.k = b.k), DESCRIPTOR(t), INTERVAL '1' SECOND)", "SQL-1701", "GROUP BY time_bucket"),
    ],
)  # fmt: skip
def test_what_would_close_them_is_refused(session: Session, text: str, code: str, hint: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(text)
    assert refused.value.code == code
    assert hint in (refused.value.hint or "")


def test_the_plan_says_that_they_never_close(session: Session) -> None:
    plan = session.execute(f"EXPLAIN {_query('tumble')}").final_rows(PATIENCE_S)
    assert "tumble(ts, 10 s), never closed" in str(plan.to_pydict())
