"""Metamorphic relations of streams: however the same changes are cut, dealt, ordered, stopped and taken back,
the answer is the same.

MR1 to MR7, MR10, MR11, MR13 to MR18 of the list in RELIABILITY; jobs driven directly hold state in memory and
align barriers, so MR11 varies the capacity of channels and whether state went through a file. MR5's stops are at
every few changes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from penstock.optimizer.optimizer import RULES
from tests.generated.queries.generated.data import START, feeds
from tests.generated.queries.generated.relations import TIMES, Run, corpus, dealt, multiset, reads, run, same
from tests.generated.queries.generated.trial import compare
from tests.harness.direct.feeds import Feed, Row
from tests.harness.length import AT_LENGTH, of_length
from tests.harness.patience import PATIENCE_S

_STATE = "execution.checkpointing.dir"


@pytest.mark.longer
@pytest.mark.parametrize(("relation", "hows"), [
    ("MR1 batches", [Run(batch_rows=1), Run(batch_rows=7), Run(batch_rows=1024)]),
    ("MR4 parallelism", [Run(2), Run(3), Run(8)]),
    ("MR4 key groups", [Run(1, settings=(("pipeline.max-parallelism", "1"),)), Run(2, settings=(("pipeline.max-parallelism", "7"),))]),
    ("MR5 stops", [Run(1, stops=((4, 2), (9, 3), (15, 1))), Run(3, 1, stops=tuple((cut, 1 + cut % 3) for cut in range(2, 24, 3)))]),
    ("MR11 channels", [Run(2, 3, capacity=1), Run(2, 100, capacity=64, order=(3, 2, 1, 0))]),
    ("MR10 split", [Run(2, settings=(("optimizer.split-aggregates", "false"),)), Run(1, settings=((_STATE, "/nonexistent"),))]),
])  # fmt: skip
def test_run_in_another_manner(relation: str, hows: list[Run]) -> None:
    for number, (tables, query) in enumerate(
        corpus(10_000 + sum(relation.encode()) % 50 * 100, of_length(2, 5))
    ):
        straight = run(tables, query)
        for how in hows if number < 1 + AT_LENGTH else [hows[number % len(hows)]]:
            same(straight, run(tables, query, how), f"{relation} {how}: {query}")


def test_mr10_without_optimizer() -> None:
    optional = ",".join(rule.name for rule in RULES)
    for tables, query in corpus(15_000, of_length(3, 6)):
        same(
            run(tables, query),
            run(tables, query, Run(2, settings=(("optimizer.disabled-rules", optional),))),
            query,
        )


def shuffled(feed: Feed, seed: int) -> Feed:
    """Changes of different rows in another order: freely, or near their places where there is a time they
    must not miss.
    """
    dice = random.Random(seed)
    reach = 2.5 if feed.time_column else 1000.0
    splits = []
    for split in feed.splits:
        keys: dict[int, float] = {}
        placed = []
        for place, change in enumerate(split):
            at = max(keys.get(change[0][0], -1.0), place + dice.random() * reach)
            keys[change[0][0]] = at
            placed.append((at, place, change))
        splits.append(tuple(change for _, _, change in sorted(placed, key=lambda item: item[:2])))
    return replace(feed, splits=tuple(splits))


def test_mr2_other_orders_and_splits() -> None:
    """Where no row comes too late by it; few do."""
    late = 0
    for number, (tables, query) in enumerate(corpus(20_000, of_length(4, 6))):
        other = {name: shuffled(dealt(feed, 1 + number % 3), number) for name, feed in tables.items()}
        turned = run(other, query, Run(1 + number % 2))
        late += turned.late > 0
        if not turned.late:
            same(run(tables, query), turned, query)
    assert late <= 2 * TIMES


def with_pairs(feed: Feed) -> Feed:
    """Rows nobody has seen, given and taken back at once or after a few changes."""
    splits = []
    for number, split in enumerate(feed.splits):
        changes = list(split)
        for place in range(len(changes) - 1, 0, -3):
            row: Row = (1_000 + 2 * place + number, *changes[place][0][1:])
            changes[place : place + 1] = [(row, 1), changes[place], (row, -1)]
        splits.append(tuple(changes))
    return replace(feed, splits=tuple(splits))


def test_mr3_pairs_that_cancel() -> None:
    for tables, query in corpus(25_000, of_length(3, 6), reads("u", "c")):
        other = tables | {name: with_pairs(tables[name]) for name in ("u", "c")}
        same(run(tables, query), run(other, query, Run(2)), query)


KEYED = [
    "SELECT k, count(*) AS n, sum(v) AS s, min(s) AS m FROM u GROUP BY k",
    "SELECT a.k, a.v, b.x FROM u AS a FULL JOIN c AS b ON a.k = b.k",
    "SELECT k, v FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS n FROM u) WHERE n <= 2",
    "SELECT k, v, lag(v) OVER (PARTITION BY k ORDER BY ts, v NULLS FIRST) AS l FROM t",
    "SELECT k, window_end, sum(v) AS s FROM HOP(TABLE c, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS)"
    " GROUP BY window_start, window_end, k",
    "SELECT k, window_end, count(*) AS s FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '4' SECONDS)"
    " GROUP BY window_start, window_end, k",
    "SELECT k, s, v FROM w WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = w.k AND u.v > w.v)",
    "SELECT DISTINCT k, s FROM u EXCEPT SELECT k, s FROM w",
]


@pytest.mark.parametrize("query", KEYED)
def test_mr6_keys_in_two_jobs(query: str) -> None:
    tables = feeds(3)
    halves = []
    for side in (0, 1):
        part = {
            name: replace(
                feed,
                splits=tuple(tuple(c for c in split if (c[0][1] or 0) % 2 == side) for split in feed.splits),
            )
            for name, feed in tables.items()
        }
        halves.append(run(part, query).rows)
    compare(halves[0] + halves[1], run(tables, query).rows, query)


def moved(value: object) -> object:
    return value + timedelta(hours=3) if isinstance(value, datetime) else value


def test_mr7_later_by_whole_windows() -> None:
    def whole(row: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(moved(value) for value in row)

    for tables, query in corpus(
        30_000, of_length(3, 5), lambda text: "TIMESTAMP '" not in text and "DESCRIPTOR" in text
    ):
        later = {
            name: replace(
                feed, splits=tuple(tuple((whole(row), w) for row, w in split) for split in feed.splits)
            )
            for name, feed in tables.items()
        }
        compare(run(later, query).rows, multiset(run(tables, query).rows, whole), query)


def test_mr13_everything_twice_through_deduplication() -> None:
    first = "(SELECT id, k, s, v, x, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY s) AS n FROM w) WHERE n = 1)"
    for tables, query in corpus(
        35_000, 4, lambda text: "FROM w AS" in text and "TABLE w" not in text and "JOIN w" not in text
    ):
        twice = tables | {
            "w": replace(tables["w"], splits=tuple(split + split[:7] + split for split in tables["w"].splits))
        }
        words = query.replace("FROM w AS", f"FROM {first} AS")
        assert words != query
        same(run(tables, query), run(twice, words, Run(2)), query)


def test_mr14_an_empty_split() -> None:
    for number, (tables, query) in enumerate(corpus(40_000, of_length(2, 4))):
        other = {name: replace(feed, splits=(*feed.splits, ())) for name, feed in tables.items()}
        same(run(tables, query), run(other, query, Run(1 + number % 2)), query)


@pytest.mark.parametrize(("window", "windows"), [
    ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECONDS)", 1),
    ("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS)", 2),
])  # fmt: skip
@pytest.mark.parametrize("parallelism", [1, 2])
def test_mr15_a_row_that_is_too_late(window: str, windows: int, parallelism: int) -> None:
    query = (
        f"SELECT k, window_end, count(*) AS n, sum(v) AS s FROM {window} GROUP BY window_start, window_end, k"
    )
    tables = feeds(1)
    late: Row = (4_000, 1, "a", 7, None, START - timedelta(seconds=5))
    other = tables | {
        "t": replace(tables["t"], splits=(tables["t"].splits[0] + ((late, 1),), *tables["t"].splits[1:]))
    }
    straight, with_late = run(tables, query, Run(parallelism)), run(other, query, Run(parallelism))
    same(straight, with_late, query)
    assert straight.late == 0
    assert 1 <= with_late.late <= windows


def test_mr17_everything_taken_back() -> None:
    """Nothing is left, in the answer but what an empty input gives, in the state but the one row of an
    aggregate without keys.
    """
    for number, (tables, query) in enumerate(
        corpus(45_000, of_length(7, 14), lambda text: "VALUES" not in text, windows=False)
    ):
        timeless = {name: replace(feed.taken_back(), time_column=None) for name, feed in tables.items()}
        nothing = {name: replace(feed, splits=((), ()), time_column=None) for name, feed in tables.items()}
        empty = run(nothing, query)
        gone = run(timeless, query, Run(1 + number % 2, stops=((8, 1),) if number % 3 == 0 else ()))
        compare(gone.rows, empty.rows, query)
        assert sum(gone.kept.values()) <= sum(empty.kept.values()), (
            f"{gone.kept} is kept of nothing, {empty.kept} of no input: {query}"
        )


BOUNDED_STATE = [
    "SELECT window_end, k, sum(v) AS s FROM CUMULATE(TABLE c, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS)"
    " GROUP BY window_start, window_end, k",
    "SELECT window_end, k, count(*) AS s FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '4' SECONDS)"
    " GROUP BY window_start, window_end, k",
    "SELECT k, window_end FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v, id) AS n"
    " FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECONDS)) WHERE n = 1",
    "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '5' SECONDS PRECEDING AND CURRENT ROW) AS s FROM t",
    "SELECT a.id, b.id FROM t AS a LEFT JOIN e AS b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '3' SECOND AND b.ts + INTERVAL '3' SECOND",
]


@pytest.mark.parametrize("query", BOUNDED_STATE)
def test_mr17_time_frees_what_it_has_passed(query: str) -> None:
    """A row far ahead in every split closes everything before it: then no more is kept than of these rows
    alone.
    """
    tables = feeds(2)
    ahead = {
        name: tuple(
            (((9_000 + i, 3, "z", 1, None, START + timedelta(days=2, microseconds=i)), 1),) for i in (0, 1)
        )
        for name in ("t", "e", "c")
    }
    alone = tables | {name: replace(tables[name], splits=ahead[name]) for name in ahead}
    after = tables | {
        name: replace(
            tables[name],
            splits=tuple(s + more for s, more in zip(tables[name].splits, ahead[name], strict=True)),
        )
        for name in ahead
    }
    for how in (Run(), Run(2, 3)):
        assert sum(run(after, query, how).kept.values()) <= sum(run(alone, query, how).kept.values()), query


_DIGEST = """
import hashlib
from penstock.engine.kernels.stable_hash import stable_hash
from tests.generated.queries.generated.data import feeds
from tests.generated.queries.generated.relations import TIMES, Run, corpus, run
import pyarrow as pa
text = [stable_hash([pa.array(["a", None, "\\u00e9"]), pa.array([1, 2, None])]).tolist()]
for tables, query in corpus(50_000, 2):
    for parallelism in (1, 2):
        ran = run(tables, query, Run(parallelism))
        text.append((query, list(ran.rows.items()), sorted(ran.kept.items())))
print(hashlib.sha256(repr(text).encode()).hexdigest())
"""


def test_mr18_hash_seeds_locales_and_time_zones() -> None:
    """Byte-identical, the order of changes and the key groups too."""
    surroundings = [
        {"PYTHONHASHSEED": "0"},
        {"PYTHONHASHSEED": "1", "TZ": "Pacific/Chatham", "LC_ALL": "C", "LANG": "C"},
    ]
    root = Path(__file__).parents[3]
    made = [
        subprocess.Popen(
            [sys.executable, "-c", _DIGEST], env={**os.environ, **more}, cwd=root, stdout=subprocess.PIPE
        )
        for more in surroundings
    ]
    digests = {process.communicate(timeout=PATIENCE_S)[0] for process in made}
    assert len(digests) == 1 and len(next(iter(digests))) == 65
