"""Metamorphic relations of queries: other words for the same thing, on our runtime or on a bounded one.
MR8, MR9, MR11, MR12, MR16, TLP, NoREC.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.storage.spill_files import SpillFiles
from penstock.engine.task.memory_budget import MemoryBudget, StateSize
from penstock.engine.task_manager.task_deployment import Deployer
from penstock.optimizer.optimizer import RULES
from tests.generated.queries.answers import rows_of
from tests.generated.queries.generated.bounded import bounded_session
from tests.generated.queries.generated.data import feeds
from tests.generated.queries.generated.queries import Queries
from tests.generated.queries.generated.relations import TIMES, Run, corpus, ran, run, same
from tests.generated.queries.generated.trial import Arena, compare, plain
from tests.harness.direct.feeds import Feed
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S

# not one over the rows of another window function, whose DESCRIPTOR would come first
_TUMBLE = re.compile(
    r"TUMBLE\((TABLE (?:(?!DESCRIPTOR|TUMBLE|HOP|CUMULATE|SESSION).)*, DESCRIPTOR\(ts\), )(INTERVAL '\d+' SECONDS)\)"
)


@pytest.mark.parametrize("word", ["HOP", "CUMULATE"])
def test_mr8_windows_of_one_step(word: str) -> None:
    for tables, query in corpus(
        60_000, of_length(2, 4), lambda text: _TUMBLE.search(text) and "window join" not in text
    ):
        other = _TUMBLE.sub(rf"{word}(\1\2, \2)", query)
        assert other != query
        same(run(tables, query), run(tables, other), other)


@pytest.mark.parametrize(("slide", "times"), [(5, 2), (5, 3), (10, 2)])
def test_mr9_a_hop_is_its_panes(slide: int, times: int) -> None:
    sums = "SELECT window_start, k, count(*) AS n, coalesce(sum(v), 0) AS s FROM {w} GROUP BY window_start, window_end, k"
    for table in ("t", "c"):
        tables = feeds(4)
        panes = run(
            tables, sums.replace("{w}", f"TUMBLE(TABLE {table}, DESCRIPTOR(ts), INTERVAL '{slide}' SECONDS)")
        ).rows
        hop = f"HOP(TABLE {table}, DESCRIPTOR(ts), INTERVAL '{slide}' SECONDS, INTERVAL '{slide * times}' SECONDS)"
        hops = run(tables, sums.replace("{w}", hop)).rows
        step = timedelta(seconds=slide)
        summed: dict[tuple[object, ...], list[int]] = {}
        for start, key, count, total in panes:
            for back in range(times):
                of = summed.setdefault((start - back * step, key), [0, 0])
                of[0], of[1] = of[0] + count, of[1] + total
        compare(
            hops,
            Counter({(*key, *values): 1 for key, values in summed.items()}),
            f"{table} {slide} x {times}",
        )


class OnDisk(MemoryBudget):
    """Has every part of the state that can go to disk go there after every batch."""

    writes = 0

    def settle(self, place: object, name: str, entries: int, states: Iterable[object]) -> StateSize:
        states = list(states)
        for part in StateSize.of(states).spillable:
            if part.spillable_bytes():
                part.spill(SpillFiles())
                OnDisk.writes += 1
        return StateSize.of(states)


@pytest.mark.longer
def test_mr11_state_in_memory_and_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for tables, query in corpus(
        80_000, of_length(3, 8), re.compile("JOIN|ROW_NUMBER|OVER|MATCH_RECOGNIZE").search
    ):
        in_memory = run(tables, query)
        with monkeypatch.context() as patch:
            patch.setattr(Deployer, "_budget", lambda self: OnDisk(1, SpillFiles()))
            same(in_memory, run(tables, query), query)
            same(in_memory, run(tables, query, Run(parallelism=2, stops=((4, 3),))), query)
    assert OnDisk.writes > of_length(30, 100)


def relation_texts(first: int, count: int) -> Iterator[tuple[dict[str, Feed], str]]:
    """Generated relations of the common layout that are not refused."""
    seed = first
    while count:
        seed += 1
        text = Queries(seed, Counter()).relation().text()
        tables = feeds(seed % 5)
        try:
            run(tables, f"SELECT * FROM {text} AS r")
        except PenstockError:
            continue
        count -= 1
        yield tables, text


def test_mr12_views_and_names() -> None:
    for tables, text in relation_texts(1_000, 6 * TIMES):
        items = "k, s, v, x, ts"
        inner = f"SELECT {items} FROM {text} AS i"
        straight = run(tables, f"SELECT {items} FROM ({inner}) AS q WHERE v IS NOT NULL")
        same(straight, run(tables, f"WITH q AS ({inner}) SELECT {items} FROM q WHERE v IS NOT NULL"), text)
        arena = Arena(tables)
        arena.session.execute(f"CREATE TEMPORARY VIEW q AS {inner}")
        arena.session.execute(f"CREATE TEMPORARY VIEW qq AS SELECT {items} FROM q")
        same(straight, ran(arena, f"SELECT {items} FROM qq WHERE v IS NOT NULL", Run(2)), text)
        arena.close()


@pytest.mark.parametrize(
    ("kind", "turned"), [("JOIN", "JOIN"), ("LEFT JOIN", "RIGHT JOIN"), ("FULL JOIN", "FULL JOIN")]
)
def test_mr12_joins_turned_around(kind: str, turned: str) -> None:
    pairs = list(relation_texts(2_000, 4 * TIMES))
    for (tables, one), (_, two) in itertools.pairwise(pairs):
        items = "a.k, b.s, a.v, b.v, b.x"
        residual = " AND a.v <= b.v" if kind != "FULL JOIN" else ""
        straight = run(tables, f"SELECT {items} FROM {one} AS a {kind} {two} AS b ON a.k = b.k{residual}")
        same(
            straight,
            run(tables, f"SELECT {items} FROM {two} AS b {turned} {one} AS a ON b.k = a.k{residual}", Run(2)),
            f"{one} {kind} {two}",
        )


AGGREGATES = ["count(*)", "sum(v)", "min(x)", "max(s)"]


def test_tlp_three_parts_of_rows() -> None:
    """Rows where a condition holds, where it does not, and where it is unknown are all rows, also to
    aggregates.
    """
    for number, (tables, text) in enumerate(relation_texts(3_000, 6 * TIMES)):
        condition = Queries(number + 77, Counter()).scalars.condition("r").text()
        parts = [
            f"SELECT k, s, v, x, ts FROM {text} AS r WHERE {word}"
            for word in (condition, f"NOT ({condition})", f"({condition}) IS NULL")
        ]
        whole = run(tables, f"SELECT k, s, v, x, ts FROM {text} AS r")
        union = " UNION ALL ".join(parts)
        same(whole, run(tables, union, Run(2)), f"{condition}: {text}")
        calls = ", ".join(AGGREGATES)
        grouped = f"SELECT k, {calls} FROM {{r}} AS q GROUP BY k HAVING count(*) > 1"
        for query in (f"SELECT {calls} FROM {{r}} AS q", grouped, "SELECT DISTINCT k, s FROM {r} AS q"):
            same(
                run(tables, query.replace("{r}", text)),
                run(tables, query.replace("{r}", f"({union})")),
                f"{condition}: {text}",
            )


def test_norec_and_other_words_for_a_condition() -> None:
    """Counting rows that pass is summing ones over all, without the optimizer; a condition said in a
    longer way says the same.
    """
    rules = (("optimizer.disabled-rules", ",".join(rule.name for rule in RULES)),)
    for number, (tables, text) in enumerate(relation_texts(4_000, 6 * TIMES)):
        condition = Queries(number + 177, Counter()).scalars.condition("r").text()
        counted = run(tables, f"SELECT count(*) AS n FROM {text} AS r WHERE {condition}").rows
        summed = run(
            tables,
            f"SELECT coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) AS n FROM {text} AS r",
            Run(settings=rules),
        ).rows
        compare(counted, summed, f"{condition}: {text}")
        for longer in (
            f"({condition}) AND TRUE",
            f"NOT (NOT ({condition}))",
            f"CASE WHEN TRUE THEN {condition} ELSE FALSE END",
            f"({condition}) IS TRUE",
        ):
            compare(
                run(tables, f"SELECT count(*) AS n FROM {text} AS r WHERE {longer}").rows,
                counted,
                f"{longer}: {text}",
            )


# MR16: as a bounded query on a backend, as a stream on our runtime


def check_bounded(queries: Iterator[tuple[dict[str, Feed], str]], backend: str) -> None:
    sessions: dict[str, Session] = {}
    asked = refused = 0
    try:
        for tables, query in queries:
            name = repr(tables["t"].splits)
            if name not in sessions:
                sessions[name] = bounded_session(tables, backend)
            try:
                bounded = plain(rows_of(sessions[name].execute(query).final_rows(PATIENCE_S)))
            except PenstockError as error:
                if error.code != "BND-5101":  # the backend has no word for it; which are few
                    raise
                refused += 1
                continue
            asked += 1
            compare(run(tables, query).rows, bounded, query)
        assert asked > 2 * refused
    finally:
        for session in sessions.values():
            session.close()


@pytest.mark.longer
def test_mr16_bounded_on_duckdb() -> None:
    check_bounded(corpus(70_000, of_length(5, 15)), "duckdb")


def test_any_value_is_the_smallest_everywhere() -> None:
    check_bounded(
        iter(
            [
                (
                    feeds(variant),
                    "SELECT k, any_value(s) AS a, any_value(v) FILTER (WHERE x > 1) AS b FROM e GROUP BY k",
                )
                for variant in (0, 1)
            ]
        ),
        "duckdb",
    )


@pytest.mark.spark
def test_mr16_bounded_on_spark() -> None:
    """As we say them to Spark, three times as many with ``make fuzz``: stream and batch have one answer."""
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    check_bounded(corpus(71_000, of_length(2, 6)), "spark")


# the relations see


def test_planted_faults_break_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leak is state that stays; a source that goes on a row too late loses rows."""
    from penstock.engine.operators.aggregate.group_aggregate import GroupState
    from tests.harness.direct.feeds import FeedOperator

    tables = feeds(0)
    query = "SELECT k, count(*) AS n FROM u GROUP BY k"
    gone = tables | {"u": tables["u"].taken_back()}
    assert run(tables, query).kept and not sum(run(gone, query).kept.values())
    remove, restore = GroupState.remove, FeedOperator.restore_items
    monkeypatch.setattr(GroupState, "remove", lambda state, slots: None)
    assert sum(run(gone, query).kept.values())
    monkeypatch.setattr(GroupState, "remove", remove)
    stopped = Run(stops=((5, 1),))
    same(run(tables, query), run(tables, query, stopped), query)
    monkeypatch.setattr(
        FeedOperator,
        "restore_items",
        lambda op, items: restore(op, [{**item, "row": item["row"] + 1} for item in items]),
    )
    assert run(tables, query).rows != run(tables, query, stopped).rows
