"""MATCH_RECOGNIZE against a naive reference: patterns, conditions, measures, watermarks, restore, rescale,
lateness.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.catalog.catalog import Catalog
from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.operators.factory import build_operator
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.binder.binder import Binder
from penstock.planner.expressions.nodes import SortKey
from penstock.planner.logical.match_recognize import MatchRecognize, SkipTo
from penstock.planner.parser.row_pattern_parser import parse_pattern
from penstock.planner.physical.operator_spec_builder import spec_of
from penstock.planner.physical.operator_specs import AnyOperatorSpec
from penstock.planner.statements.nodes import CreateTable, Query
from penstock.planner.statements.script import parse_script
from tests.harness.length import examples
from tests.unit.engine.operators.match.match_reference import Condition, Row, Search, View, matches
from tests.unit.engine.operators.partition_runs import ROW, START, Subtasks, column, micros, parts_of

K, T, X, S = 0, 1, 2, 3
AFTER = START + timedelta(seconds=1)
BY_TIME = (SortKey(column(1)),)
CATALOG = Catalog()
(_TABLE,) = parse_script(
    "CREATE TABLE r (k BIGINT, t TIMESTAMP, x BIGINT, s STRING, WATERMARK FOR t AS t) WITH ('connector' = 'datagen')"
)
assert isinstance(_TABLE.node, CreateTable)
CATALOG.create_table(Binder(CATALOG, Settings({})).bind_create_table(_TABLE.node), False)


def node_of(clauses: str) -> MatchRecognize:
    (statement,) = parse_script(f"SELECT * FROM r MATCH_RECOGNIZE ({clauses})")
    assert isinstance(statement.node, Query)
    plan = Binder(CATALOG, Settings({})).bind_query(statement.node)
    return next(node for node in plan.walk() if isinstance(node, MatchRecognize))


def spec_for(clauses: str) -> AnyOperatorSpec:
    spec = spec_of(node_of(clauses), "o", PlanFacts(), Settings({}))
    assert isinstance(spec.node, MatchRecognize)
    return spec


def run_of(clauses: str) -> Subtasks:
    spec = spec_for(clauses)
    return Subtasks(lambda: build_operator(spec, JobOptions()), spec.node.partition)


def holds(a: Any, b: Any, test: Any) -> bool:
    return a is not None and b is not None and test(a, b)


def greater(a: Any, b: Any) -> bool:
    return holds(a, b, lambda x, y: x > y)


def total(values: list[Any]) -> Any:
    return sum(values) if values else None


# Conditions of a variable V, another one O: SQL, and the same over a view of the match so far.
CONDITIONS: list[tuple[str, Any]] = [
    ("V.x > 0", lambda v, o: lambda m: greater(m.last(v, X), 0)),
    ("s = 'a'", lambda v, o: lambda m: m.last(None, S) == "a"),
    ("V.s <> 'a' OR V.x IS NULL", lambda v, o: lambda m: m.last(v, S) == "b" or m.last(v, X) is None),
    ("V.x > PREV(V.x)", lambda v, o: lambda m: greater(m.last(v, X), m.last(v, X, 0, 1))),
    ("PREV(s, 2) = 'b' OR x < 3", lambda v, o: lambda m: m.last(None, S, 0, 2) == "b" or greater(3, m.last(None, X))),
    ("V.x >= LAST(O.x) OR LAST(O.x) IS NULL", lambda v, o: lambda m: greater(m.last(v, X), (m.last(o, X) or 0) - 1) or m.last(o, X) is None),
    ("V.x > LAST(V.x, 1) OR COUNT(V.*) = 1", lambda v, o: lambda m: greater(m.last(v, X), m.last(v, X, 1)) or len(m.rows(v)) == 1),
    ("V.x = FIRST(x, 1) OR V.s = FIRST(O.s)", lambda v, o: lambda m: (m.last(v, X) is not None and m.last(v, X) == m.first(None, X, 1))
        or (m.last(v, S) is not None and m.last(v, S) == m.first(o, S))),
    ("SUM(V.x) < 6", lambda v, o: lambda m: greater(6, total(m.some(v, X)))),
    ("SUM(x) + COUNT(O.x) * 2 <> 5 AND V.t > TIMESTAMP '2024-01-01 00:00:01'",
     lambda v, o: lambda m: bool(m.some(None, X)) and sum(m.some(None, X)) + 2 * len(m.some(o, X)) != 5 and m.last(v, T) > AFTER),
    ("MAX(s) > LAST(O.s) OR MIN(V.x) < 0", lambda v, o: lambda m: (greater(max(m.some(None, S)), m.last(o, S)) if m.some(None, S) else False)
        or (bool(m.some(v, X)) and min(m.some(v, X)) < 0)),
    ("AVG(x) > 1", lambda v, o: lambda m: bool(m.some(None, X)) and sum(m.some(None, X)) / len(m.some(None, X)) > 1),
    ("V.t - FIRST(t) <= INTERVAL '3' SECOND", lambda v, o: lambda m: m.last(v, T) - m.first(None, T) <= timedelta(seconds=3)),
    ("TIMESTAMPDIFF(SECOND, LAST(t, 1), V.t) < 3 OR LAST(t, 1) IS NULL",
     lambda v, o: lambda m: m.last(None, T, 1) is None or (m.last(v, T) - m.last(None, T, 1)).seconds < 3),
    ("NOT (PREV(LAST(O.x)) > 1) OR V.s IS NULL", lambda v, o: lambda m: (m.last(o, X, 0, 1) is not None and m.last(o, X, 0, 1) <= 1)
        or m.last(v, S) is None),
]  # fmt: skip
# Measures over variables V and O, and the same over a view of the match.
MEASURES: list[tuple[str, Any]] = [
    ("V.x", lambda v, o: lambda m: m.last(v, X)),
    ("FIRST(V.x, 1)", lambda v, o: lambda m: m.first(v, X, 1)),
    ("LAST(O.s, 1)", lambda v, o: lambda m: m.last(o, S, 1)),
    ("PREV(FIRST(x), 2)", lambda v, o: lambda m: m.first(None, X, 0, 2)),
    ("COUNT(*) * 10 + COUNT(V.x)", lambda v, o: lambda m: len(m.way) * 10 + len(m.some(v, X))),
    ("SUM(O.x)", lambda v, o: lambda m: total(m.some(o, X))),
    ("MIN(s) || COALESCE(MAX(V.s), '-')",
     lambda v, o: lambda m: min(m.some(None, S)) + (max(m.some(v, S)) if m.some(v, S) else "-") if m.some(None, S) else None),
    ("LAST(t) - FIRST(t)", lambda v, o: lambda m: m.last(None, T) - m.first(None, T)),
    ("CLASSIFIER()", lambda v, o: lambda m: m.way[-1].name),
    ("COUNT(U.*)", lambda v, o: lambda m: len(m.rows(v + o))),
]  # fmt: skip


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> str:
    """Patterns as text."""
    kind = (
        draw(st.sampled_from(["v", "v", "v", "seq", "seq", "alt", "rep", "rep", "not", "perm"]))
        if depth
        else "v"
    )
    if kind == "v":
        return draw(st.sampled_from("ABC"))
    part = draw(texts(depth - 1))
    if kind == "rep":
        return f"({part}){draw(st.sampled_from(['*', '+', '?', '{2}', '{1,2}', '{2,}', '{,2}']))}{draw(st.sampled_from(['', '?']))}"
    if kind == "not":
        return f"{{- {part} -}}"
    other = draw(texts(depth - 1))
    return {"seq": f"{part} {other}", "alt": f"({part} | {other})", "perm": f"PERMUTE({part}, {other})"}[kind]


@st.composite
def queries(draw: st.DrawFn) -> tuple[str, Any]:
    """Clauses, and a function from the sorted rows of a partition to what they give."""
    text = draw(texts())
    try:
        pattern = parse_pattern(text, 0)
    except PenstockError:
        assume(False)
    assume(pattern.size <= 24)
    names = list(dict.fromkeys(pattern.names()))
    conditions: dict[str, Condition] = {}
    defines = []
    for name in names:
        if draw(st.integers(0, 3)) or name == names[0]:
            sql, make = draw(st.sampled_from(CONDITIONS))
            other = draw(st.sampled_from(names))
            defines.append(f"{name} AS {sql.replace('V.', name + '.').replace('O.', other + '.')}")
            conditions[name] = make(name, other)
    v, o = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    measured = draw(st.lists(st.sampled_from(MEASURES), min_size=1, max_size=3))
    all_rows = draw(st.booleans())
    within = draw(st.sampled_from([None, None, 2, 5]))
    skip = draw(st.sampled_from([SkipTo.PAST_LAST_ROW, SkipTo.PAST_LAST_ROW, *SkipTo]))
    target = draw(st.sampled_from(names)) if skip in (SkipTo.FIRST, SkipTo.LAST) else ""
    measures = [
        f"{sql.replace('V.', v + '.').replace('O.', o + '.')} AS m{i}" for i, (sql, _) in enumerate(measured)
    ]
    clauses = (
        f"PARTITION BY k ORDER BY t MEASURES MATCH_NUMBER() AS n, MATCH_ROWTIME() AS rt, {', '.join(measures)}"
        f" {'ALL ROWS' if all_rows else 'ONE ROW'} PER MATCH AFTER MATCH SKIP {skip} {target}"
        f" PATTERN ({text}){'' if within is None else f' WITHIN INTERVAL {within} SECONDS'}"
        f" SUBSET U = ({v}{'' if v == o else f', {o}'}) DEFINE {', '.join(defines)}"
    )

    def answer(part: list[Row]) -> list[Row]:
        search = Search(part, conditions, None if within is None else timedelta(seconds=within))
        found = []
        for match in matches(search, pattern, skip, target):
            views = (
                [View(part, match.way[: i + 1]) for i, taken in enumerate(match.way) if taken.shown]
                if all_rows
                else [match]
            )
            for view in views:
                row = part[view.way[-1].at]
                told = (match.number, match.last(None, T), *(make(v, o)(view) for _, make in measured))
                found.append((*row, *told) if all_rows else (row[K], *told))
        return found

    return clauses, answer


@settings(max_examples=examples(80), deadline=None, derandomize=True)
@given(data=st.data())
def test_the_matches_are_those_of_the_reference(data: st.DataObject) -> None:
    clauses, answer = data.draw(queries())
    try:
        spec = spec_for(clauses)
    except PenstockError as error:
        assert error.code == "SQL-1745"
        return
    run = Subtasks(lambda: build_operator(spec, JobOptions()), spec.node.partition)
    shift = st.integers(0, 2)
    rows = sorted(
        data.draw(st.lists(ROW, max_size=18)), key=lambda row: row[1] + timedelta(seconds=data.draw(shift))
    )
    try:
        expected = Counter(row for part in parts_of(Counter(rows), (K,), BY_TIME) for row in answer(part))
    except LookupError:
        with pytest.raises(PenstockError, match="SKIP TO"):
            follow(run, rows, data, len(spec.schema) - len(spec.node.measures) + 1)
        return
    follow(run, rows, data, len(spec.schema) - len(spec.node.measures) + 1)
    assert run.out.folded() == expected, clauses


def follow(run: Subtasks, rows: list[Row], data: st.DataObject, rowtime: int) -> None:
    """Feed rows piece by piece, let time go on now and then, cut and rescale; no match may be behind the
    time that was passed on.
    """
    done, passed = 0, -(2**62)
    while done < len(rows):
        size = data.draw(st.sampled_from([1, 3, 10]))
        run.feed([(row, 1) for row in rows[done : done + size]])
        done += size
        if done < len(rows) and data.draw(st.booleans()):
            passed = goes_on(run, micros(min(row[1] for row in rows[done:])), passed, rowtime)
        if data.draw(st.sampled_from([False, False, True])):
            run.rescale(data.draw(st.integers(1, 3)))
    goes_on(run, MAX_WATERMARK_US, passed, rowtime)


def goes_on(run: Subtasks, time: int, passed: int, rowtime: int) -> int:
    before = len(run.out.changes())
    run.watermark(time)
    assert all(micros(row[rowtime]) >= passed for row, _ in run.out.changes()[before:])
    return max(passed, min(operator.passes_on(time) for operator in run.operators))


def row(second: float, x: int | None, s: str | None = None, k: int | None = 1) -> tuple[Row, int]:
    return (k, START + timedelta(seconds=second), x, s), 1


def told(run: Subtasks) -> list[Any]:
    return [change[0][1] if len(change[0]) == 2 else change[0][1:] for change in run.out.changes()]


def finished(clauses: str, values: list[int | None]) -> list[Any]:
    run = run_of(f"PARTITION BY k ORDER BY t {clauses}")
    run.feed([row(second, x) for second, x in enumerate(values)])
    run.watermark(MAX_WATERMARK_US)
    assert run.kept() == 0
    return told(run)


FALLS = "DEFINE D AS D.x < PREV(D.x), U AS U.x > PREV(U.x)"


@pytest.mark.parametrize(
    ("skip", "values", "expected"),
    [
        ("PAST LAST ROW", [9, 5, 8, 7, 3, 9], [(9, 8), (7, 9)]),
        ("TO LAST U", [9, 5, 8, 7, 3, 9], [(9, 8), (8, 9)]),
        ("TO FIRST U", [9, 5, 6, 4, 9], [(9, 6), (6, 9)]),
        ("TO D", [9, 5, 3, 8, 2, 4], [(9, 8), (8, 4)]),
    ],
)
def test_where_the_search_goes_on(
    skip: str, values: list[int | None], expected: list[tuple[int, int]]
) -> None:
    assert (
        finished(f"MEASURES S.x AS a, U.x AS b AFTER MATCH SKIP {skip} PATTERN (S D+ U+) {FALLS}", values)
        == expected
    )


def test_skip_to_next_row_finds_overlapping_matches() -> None:
    found = finished(
        "MEASURES COUNT(*) AS n, LAST(A.x) AS x AFTER MATCH SKIP TO NEXT ROW PATTERN (A{2,3}) DEFINE A AS A.x > 0",
        [1, 2, 3, 4],
    )
    assert found == [(3, 3), (3, 4), (2, 4)]


@pytest.mark.parametrize(
    ("clauses", "code"),
    [
        ("AFTER MATCH SKIP TO LAST B PATTERN (A B?) DEFINE A AS x > 0, B AS x > 5", "RUN-2021"),
        ("AFTER MATCH SKIP TO FIRST B PATTERN (B | A) DEFINE A AS x < 0, B AS x > 0", "RUN-2021"),
        ("PATTERN (A+) DEFINE A AS SUM(A.x * 4611686018427387903) > 0", "RUN-2002"),
        ("PATTERN (A B) DEFINE B AS CAST(A.x AS DOUBLE) / (B.x - A.x - 1) > 0", "RUN-2001"),
    ],
)
def test_what_fails_while_it_runs(clauses: str, code: str) -> None:
    with pytest.raises(PenstockError) as caught:
        finished(f"MEASURES A.x AS a {clauses}", [1, 2, 3])
    assert caught.value.code == code and caught.value.hint


@pytest.mark.parametrize(
    "guarded",
    [
        "A.x <> 0 AND {} > 1",
        "NOT (A.x = 0 OR {} <= 1)",
        "(A.x = 0 OR {} > 1) AND A.x <> 0",
        "A.x > 0 AND (B.x < 0 OR {} > 1) AND COUNT(*) > 1",
    ],
)
def test_a_guard_keeps_what_it_guards_from_failing(guarded: str) -> None:
    quotient = "CAST(B.x AS DOUBLE) / CAST(A.x AS DOUBLE)"
    clauses = f"MEASURES A.x AS a, B.x AS b PATTERN (A B) DEFINE B AS {guarded.format(quotient)}"
    assert finished(clauses, [0, 5, 3, 4, None, 2, 6]) == [(3, 4), (2, 6)]


def test_a_search_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.operators.match.nfa_search.MOST_STEPS", 1000)
    with pytest.raises(PenstockError, match="tried") as caught:
        finished(
            "MEASURES A.x AS a PATTERN ((A | B | C)+ D) DEFINE A AS SUM(x) > 0, B AS SUM(x) > 1, D AS D.x < 0",
            [1] * 20,
        )
    assert caught.value.code == "RUN-2022"
    alone = "MEASURES A.x AS a PATTERN ((A | B | C)+ D) DEFINE A AS A.x > 0, B AS B.x > -1, D AS D.x < 0"
    assert finished(alone, [1] * 200) == []  # conditions of rows alone are tried once each


def test_a_match_is_given_as_soon_as_nothing_can_change_it() -> None:
    run = run_of(
        "ORDER BY t MEASURES COUNT(*) AS n, MATCH_ROWTIME() AS rt PATTERN (A B+) WITHIN INTERVAL '5' SECOND DEFINE A AS x = 1, B AS x = 2"
    )
    run.feed([row(0, 1), row(1, 2), row(2, 2)])
    second = micros(START)
    run.watermark(second + 3_000_000)
    # A B may still turn out to be all
    assert not run.out.changes() and run.operators[0].passes_on(second + 3_000_000) == second + 1_000_000
    run.rescale(2)
    run.watermark(second + 5_000_000)
    assert (
        not run.out.changes()
        and min(o.passes_on(second + 5_000_000) for o in run.operators) == second + 1_000_000
    )
    run.watermark(second + 5_000_001)  # no row within five seconds of the first can come any more
    assert [change[0][0] for change in run.out.changes()] == [3]
    assert min(o.passes_on(second + 5_000_001) for o in run.operators) == second + 5_000_001
    assert run.kept() == 0


def test_late_rows_and_rows_without_a_time_are_dropped() -> None:
    run = run_of("PARTITION BY k ORDER BY t MEASURES COUNT(*) AS n PATTERN (A+) DEFINE A AS TRUE")
    run.feed([row(5, 1), ((1, None, 1, None), 1)])
    run.feed([row(3, 1)], behind=micros(START) + 4_000_000)
    run.watermark(micros(START) + 6_000_000)
    run.feed([row(5, 1), row(6, 1)])
    run.watermark(MAX_WATERMARK_US)
    assert told(run) == [2]


def test_rows_alike_in_all_columns_keep_their_places() -> None:
    run = run_of(
        "PARTITION BY k ORDER BY t MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH PATTERN (A B+? C D) DEFINE D AS D.x = 2"
    )
    run.feed([row(0, 1), row(0, 1), row(0, 1), row(0, 1)])
    run.watermark(micros(START) + 1)
    run.rescale(3)
    run.feed([row(1, 2)])
    run.watermark(MAX_WATERMARK_US)
    assert "".join(change[0][-1] for change in run.out.changes()) == "ABBCD"


def test_only_what_prev_looks_at_stays_of_a_partition() -> None:
    run = run_of(
        "PARTITION BY k ORDER BY t MEASURES B.x AS x PATTERN (B) DEFINE B AS B.x > PREV(B.x, 2) AND COUNT(*) > 0"
    )
    run.feed([row(second, second % 3, k=second % 5) for second in range(100)])
    run.watermark(micros(START) + 1_000_000_000)
    assert run.kept() == 10
    run.rescale(2)
    run.feed([row(2000, 2, k=1), row(2001, 2, k=1), row(2002, 3, k=1)])
    run.watermark(MAX_WATERMARK_US)
    part = [x for second in range(100) for x in [second % 3] if second % 5 == 1] + [2, 2, 3]
    assert sum(key == 1 for (key, _), _ in run.out.changes()) == sum(
        b > a for a, b in zip(part, part[2:], strict=False)
    )
