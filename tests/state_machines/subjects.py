"""The operators under test, each by the smallest query that has it."""

from __future__ import annotations

from tests.state_machines import references as ref
from tests.state_machines import timed_references as timed
from tests.state_machines.harness import Subject

_AGGREGATES = "count(*), sum(v), min(v), max(v), count(DISTINCT v)"
_IDS = "a.id, a.v, b.id, b.v"
_TWO = ("a", "b")


def _join(kind: str, residual: bool = False) -> Subject:
    meets = ref.equal_and_less if residual else ref.equal
    also = " AND a.v < b.v" if residual else ""
    if kind in ("semi", "anti"):
        negated = "NOT " if kind == "anti" else ""
        query = f"SELECT id, v FROM a WHERE {negated}EXISTS (SELECT 1 FROM b WHERE b.k = a.k{also})"
    else:
        query = f"SELECT {_IDS} FROM a {kind.upper()} JOIN b ON a.k = b.k{also}"
    return Subject(query, ref.join(kind, meets), tables=_TWO, has="RegularJoinOperator")


def _near(kind: str) -> Subject:
    between = "a.ts BETWEEN b.ts - INTERVAL '3' SECOND AND b.ts + INTERVAL '2' SECOND"
    query = f"SELECT {_IDS} FROM a {kind.upper()} JOIN b ON a.k = b.k AND {between}"
    if kind in ("semi", "anti"):
        query = f"SELECT a.id, a.v FROM a LEFT {kind.upper()} JOIN b ON a.k = b.k AND {between}"
    return Subject(
        query, ref.near_in_time(kind), timed=True, retracts=False, tables=_TWO, has="IntervalJoinOperator"
    )


def _as_of(kind: str) -> Subject:
    last = "(SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM b) WHERE n = 1)"
    query = f"SELECT {_IDS} FROM a {kind.upper()} JOIN {last} FOR SYSTEM_TIME AS OF a.ts AS b ON a.k = b.k"
    return Subject(
        query, timed.as_of(kind), timed=True, retracts=False, tables=_TWO, has="TemporalJoinOperator"
    )


def _window_join(kind: str) -> Subject:
    sides = [f"TUMBLE(TABLE {name}, DESCRIPTOR(ts), INTERVAL '5' SECONDS) AS {name}" for name in _TWO]
    met = "a.window_start = b.window_start AND a.window_end = b.window_end AND a.k = b.k"
    query = f"SELECT {_IDS} FROM {sides[0]} {kind.upper()} JOIN {sides[1]} ON {met}"
    if kind in ("semi", "anti"):
        query = f"SELECT id, v FROM {sides[0]} WHERE {'NOT ' if kind == 'anti' else ''}EXISTS (SELECT 1 FROM {sides[1]} WHERE {met})"
    return Subject(
        query,
        timed.in_equal_windows(kind),
        timed=True,
        retracts=False,
        tables=_TWO,
        has="IntervalJoinOperator",
    )


def _windows(call: str, reference: object, retracts: bool, has: str, lates: bool = True) -> Subject:
    query = (
        f"SELECT k, window_start, window_end, {_AGGREGATES} FROM {call} GROUP BY window_start, window_end, k"
    )
    return Subject(query, reference, timed=True, retracts=retracts, has=has, lates=lates)  # type: ignore[arg-type]


def _top(rank: str) -> Subject:
    order = "v NULLS FIRST, id" if rank == "row_number" else "v NULLS FIRST"
    query = f"SELECT id, k, n FROM (SELECT *, {rank.upper()}() OVER (PARTITION BY k ORDER BY {order}) AS n FROM a) WHERE n <= 2"
    return Subject(query, ref.top_of_keys(rank), has="RetractTopNOperator")


_TUMBLE = "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '5' SECONDS)"
_HOP = "HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '3' SECONDS, INTERVAL '6' SECONDS)"
_CUMULATE = "CUMULATE(TABLE a, DESCRIPTOR(ts), INTERVAL '2' SECONDS, INTERVAL '6' SECONDS)"
_SESSION = "SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL '4' SECONDS)"

SUBJECTS: dict[str, Subject] = {
    **{f"join {kind}": _join(kind) for kind in ("inner", "left", "right", "full", "semi", "anti")},
    **{f"join {kind} with a residual": _join(kind, True) for kind in ("left", "full", "semi", "anti")},
    **{f"join near in time {kind}": _near(kind) for kind in ("inner", "left", "right", "full", "semi", "anti")},
    **{f"join in windows {kind}": _window_join(kind) for kind in ("inner", "left", "right", "full", "semi", "anti")},
    **{f"join as of {kind}": _as_of(kind) for kind in ("inner", "left")},
    "unnest": Subject("SELECT id, e, n FROM a, UNNEST(ARRAY[v, CAST(k AS BIGINT)]) WITH ORDINALITY AS u(e, n)", timed.elements, has="UnnestOperator"),
    "limit": Subject("SELECT count(*) FROM (SELECT id FROM a LIMIT 3)", timed.some, retracts=False, has="LimitOperator"),
    "limit of changes": Subject("SELECT count(*) FROM (SELECT id FROM a LIMIT 3)", timed.some, has="RetractLimitOperator"),
    "group aggregate": Subject(f"SELECT k, {_AGGREGATES} FROM a GROUP BY k", ref.grouped, has="GroupAggregateOperator"),
    "group aggregate of inserts": Subject(f"SELECT k, {_AGGREGATES} FROM a GROUP BY k", ref.grouped, retracts=False),
    "aggregate without keys": Subject(f"SELECT {_AGGREGATES} FROM a", ref.whole, has="GroupAggregateOperator"),
    "having and filter": Subject("SELECT k, count(*), count(*) FILTER (WHERE v > 1) FROM a GROUP BY k HAVING count(*) > 1", ref.filtered),
    "distinct": Subject("SELECT DISTINCT k, v FROM a", ref.distinct),
    **{f"{word} of sets": Subject(f"SELECT k, v FROM a {word} SELECT k, v FROM b", ref.sets(word), tables=_TWO) for word in (
        "UNION", "INTERSECT", "EXCEPT", "UNION ALL", "INTERSECT ALL", "EXCEPT ALL")},
    "tumble": _windows(_TUMBLE, ref.window_groups(ref.tumble), False, "WindowAggregateOperator"),
    "tumble over changes": _windows(_TUMBLE, ref.window_groups(ref.tumble), True, "WindowAggregateOperator"),
    "hop": _windows(_HOP, ref.window_groups(ref.hop), False, "WindowAggregateOperator"),
    "hop over changes": _windows(_HOP, ref.window_groups(ref.hop), True, "WindowAggregateOperator"),
    "cumulate": _windows(_CUMULATE, ref.window_groups(ref.cumulate), False, "WindowAggregateOperator"),
    "session": _windows(_SESSION, ref.sessions, False, "SessionAggregateOperator"),
    "session over changes": _windows(_SESSION, ref.sessions_of_changes, True, "RetractSessionOperator", lates=False),
    "rows of sessions": Subject(
        f"SELECT id, k, window_start, window_end FROM {_SESSION}", ref.rows_of_sessions, timed=True, retracts=False, has="SessionFunctionOperator"),
    "window top": Subject(
        "SELECT window_start, window_end, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end"
        f" ORDER BY v DESC NULLS LAST, id) AS n FROM {_TUMBLE}) WHERE n <= 2",
        ref.window_top, timed=True, retracts=False, has="WindowTopNOperator"),
    "top": Subject("SELECT id, v FROM a ORDER BY v NULLS FIRST, id LIMIT 3 OFFSET 1", ref.top, has="TopNOperator"),
    "top of inserts": Subject("SELECT id, v FROM a ORDER BY v NULLS FIRST, id LIMIT 3 OFFSET 1", ref.top, retracts=False, has="TopNOperator"),
    **{f"{rank} of partitions": _top(rank) for rank in ("row_number", "rank", "dense_rank")},
    "first row of keys": Subject(
        "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM a) WHERE n = 1",
        ref.first_of_keys, timed=True, retracts=False, has="EventTimeOverOperator"),
    "last row of keys": Subject(
        "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM a) WHERE n = 1",
        ref.last_of_keys, retracts=False, has="AppendTopNOperator"),
    "over in time": Subject(
        "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '5' SECONDS PRECEDING AND CURRENT ROW),"
        " ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts), lag(v, 2) OVER (PARTITION BY k ORDER BY ts) FROM a",
        ref.running_in_time, timed=True, retracts=False, has="EventTimeOverOperator"),
    "over changes": Subject(
        "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY v NULLS FIRST, id ROWS UNBOUNDED PRECEDING),"
        " lead(id) OVER (PARTITION BY k ORDER BY v NULLS FIRST, id), count(*) OVER (PARTITION BY k) FROM a",
        ref.over_changes, has="RetractOverOperator"),
}  # fmt: skip
