"""What metamorphic relations share: a query run on feeds in some manner, and the queries a relation is
tried on.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from penstock.catalog.errors import PenstockError
from tests.generated.queries.generated.data import feeds
from tests.generated.queries.generated.declared import declared
from tests.generated.queries.generated.queries import generated
from tests.generated.queries.generated.trial import Arena, Rows, compare, plain
from tests.harness.direct.feeds import Feed, Feeds
from tests.harness.direct.job import DirectJob, planned

TIMES = int(os.environ.get("RELATIONS", "1"))
"""How many times the usual number of queries."""


@dataclass(frozen=True)
class Run:
    """How a job is run. ``stops``: after how many changes a split it is stopped and gone on with, at a
    parallelism each.
    """

    parallelism: int = 1
    batch_rows: int = 9
    capacity: int = 8
    stops: tuple[tuple[int, int], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Ran:
    """What came of a run."""

    rows: Rows
    late: int
    kept: dict[str, int]


def run(tables: dict[str, Feed], query: str, how: Run | None = None) -> Ran:
    """The folded rows of a query, how many rows were late, and how many entries each operator kept when
    all was read.
    """
    how = how or Run()
    arena = Arena(tables, **dict(how.settings))
    try:
        return ran(arena, query, how)
    finally:
        arena.close()


def ran(arena: Arena, query: str, how: Run) -> Ran:
    if how.stops:
        arena.session.settings.set("execution.checkpointing.dir", "/nonexistent")
    fed = Feeds(arena.tables, batch_rows=how.batch_rows)

    def job(parallelism: int, **rest: object) -> DirectJob:
        graph = planned(arena.session, query, parallelism).graph
        return DirectJob(
            graph, fed, batch_rows=how.batch_rows, capacity=how.capacity, order=how.order, **rest
        )  # type: ignore[arg-type]

    running, late = job(how.parallelism), 0
    for cut, parallelism in how.stops:
        running.advance(cut)
        snapshot = running.barrier()
        late += running.late_rows()
        running.close()
        running = job(parallelism, snapshot=snapshot, changelog=running.changelog)
    running.advance(1 << 50)
    kept = running.barrier().rows()
    rows = running.finish()
    return Ran(rows, late + running.late_rows(), kept)


def corpus(
    first: int, count: int, wanted: Callable[[str], object] = bool, windows: bool = True
) -> Iterator[tuple[dict[str, Feed], str]]:
    """Queries of one answer for one relation, with the tables they read: those whose text is wanted.
    Declared limits are passed over.
    """
    found = 0
    for query in generated(first, first + 100 * count * TIMES, windows):
        text = query.tree.text()
        if query.tree.sort == "some rows" or not wanted(text):
            continue
        tables = feeds(query.seed % 5)
        try:
            run(tables, text)
        except PenstockError as error:
            if declared(f"{error.code} {error.message}"):
                continue
            raise
        yield tables, text
        found += 1
        if found == count * TIMES:
            return


def same(one: Ran, other: Ran, query: str) -> None:
    compare(other.rows, plain(one.rows), query)


def reads(*names: str) -> Callable[[str], object]:
    """Whether a text reads one of some tables."""
    pattern = re.compile(rf"(FROM|TABLE|JOIN) ({'|'.join(names)})\b")
    return pattern.search


def dealt(feed: Feed, splits: int) -> Feed:
    """The same changes in another number of splits; those of one row stay together and in order."""
    merged = sorted(
        (
            (place, number, change)
            for number, split in enumerate(feed.splits)
            for place, change in enumerate(split)
        ),
        key=lambda item: item[:2],
    )
    parts: list[list[object]] = [[] for _ in range(splits)]
    for _, _, change in merged:
        parts[change[0][0] % splits].append(change)
    return replace(feed, splits=tuple(tuple(part) for part in parts))  # type: ignore[arg-type]


def multiset(rows: Rows, change: Callable[[tuple[object, ...]], tuple[object, ...]]) -> Rows:
    """The rows, each changed."""
    total: Rows = Counter()
    for row, count in rows.items():
        total[change(row)] += count
    return total
