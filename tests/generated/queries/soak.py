"""Many generated queries: ``python -m tests.generated.queries.soak 0 10000`` runs the queries of seeds 0 to 9999.

Each is run in the manner of its seed, and held against DuckDB: half of them are stopped in the middle and
restored at another number of slots. With ``--spark`` or ``--duckdb`` they are asked of that backend as bounded
queries, and their order is compared too. What goes wrong is reported, made small. Then come the counts: of
answers, of queries without an answer by reason, of constructs, and the constructs that few queries had.
``--sum`` and the printed files of several runs add those up.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from penstock.catalog.errors import PenstockError
from penstock.client.execution.planned_query import PlannedQuery
from penstock.client.session import Session
from penstock.planner.logical.scan import BoundedInput
from tests.generated.queries.answers import rows_of
from tests.generated.queries.generated.bounded import bounded_session
from tests.generated.queries.generated.declared import declared
from tests.generated.queries.generated.queries import Generated, generated
from tests.generated.queries.generated.relations import run
from tests.generated.queries.generated.report import kind_of, report
from tests.generated.queries.generated.trial import (
    Arena,
    Manner,
    Wrong,
    compare,
    compare_some,
    exact,
    outcome,
)
from tests.harness.patience import PATIENCE_S

REPORTED_OF_A_KIND = 2
VARIANTS = 35
OF_A_VARIANT = 50  # seeds in a row over the same rows
LANES = 2  # while Spark plans one bounded query, Python binds another
FEW = 5  # a construct should be met more often
TOLD_EVERY = 100
_PRINTED = ("outcomes", "manners", "unanswered", "wrong", "met")


@dataclass
class Counts:
    """What came of the queries so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    manners: Counter[str] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    offered: set[str] = field(default_factory=set)

    def add(self, query: Generated, name: str) -> None:
        self.outcomes[name] += 1
        self.met.update(query.features)
        self.offered |= query.offered
        if sum(self.outcomes.values()) % TOLD_EVERY == 0:
            print(f"seed {query.seed}: {dict(self.outcomes)}, {time.process_time():.0f} s", flush=True)

    def add_failure(self, told: str) -> bool:
        """Count what went wrong; return whether so few went wrong in this way that it is reported."""
        self.wrong[kind_of(told)] += 1
        return self.wrong[kind_of(told)] <= REPORTED_OF_A_KIND

    def print(self) -> None:
        """Print the counts, each kind as one line of JSON that ``read`` adds up."""
        for name in _PRINTED:
            print(f"{name} {json.dumps(dict(getattr(self, name).most_common()))}")
        print(f"offered {json.dumps(sorted(self.offered))}", flush=True)

    def read(self, lines: Sequence[str]) -> None:
        """Add what another run has printed."""
        for line in lines:
            name, _, rest = line.partition(" ")
            if name in _PRINTED and rest.startswith("{"):
                getattr(self, name).update(json.loads(rest))
            elif name == "offered":
                self.offered |= set(json.loads(rest))

    def print_table(self) -> None:
        """Print a line for each kind of outcome and each group of constructs, and what was met too seldom."""
        for title in ("outcomes", "manners", "unanswered", "wrong"):
            for name, count in sorted(getattr(self, title).items()):
                print(f"{title:10} {count:6} {name}")
        groups: dict[str, list[str]] = {}
        for construct in sorted(self.offered | set(self.met)):
            groups.setdefault(construct.partition(":")[0], []).append(construct)
        for group, members in groups.items():
            counts = [self.met[member] for member in members]
            print(f"constructs {len(members):6} of {group}: met {min(counts)} to {max(counts)} times each")
        few = {member: self.met[member] for member in sorted(self.offered) if self.met[member] < FEW}
        print(
            f"constructs {len(self.offered | set(self.met)):6} in all, {len(few)} met fewer than {FEW} times: {few}"
        )


def _variants(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Seeds in a row over the same rows: the first of them, and the first of the next."""
    begin = first
    while begin < last:
        end = min(last, begin - begin % OF_A_VARIANT + OF_A_VARIANT)
        yield begin, end
        begin = end


def arenas(first: int, last: int) -> Iterator[tuple[Arena, Iterator[Generated]]]:
    """The queries with the rows they are run over, one variant after the other."""
    for begin, end in _variants(first, last):
        arena = Arena.of(begin // OF_A_VARIANT % VARIANTS)
        yield arena, generated(begin, end)
        arena.close()


def compare_streams(first: int, last: int, counts: Counts | None = None) -> Counts:
    """Run queries as jobs on streams, and hold them against DuckDB."""
    counts = counts or Counts()
    for arena, queries in arenas(first, last):
        arena.unanswered = counts.unanswered
        for query in queries:
            manner = Manner.soaked(query.seed)
            told = outcome(arena, query.tree, manner)
            name = told if told in ("same", "skipped") else declared(told)
            counts.manners[manner.kind] += 1
            counts.add(query, name or "wrong")
            if name is None and counts.add_failure(told):
                print(f"\nseed {query.seed}\n{report(arena, query.tree, manner, told)}", flush=True)
    return counts


def compare_backend(first: int, last: int, backend: str, counts: Counts | None = None) -> Counts:
    """Ask queries of a backend, as bounded queries, and hold them against DuckDB's answers to its own words."""
    counts = counts or Counts()
    with ThreadPoolExecutor(LANES) as pool:
        for begin, end in _variants(first, last):
            queries = list(generated(begin, end))
            with _lanes(begin, backend) as lanes:
                answers = pool.map(partial(_in_a_lane, lanes), queries)
                for query, told in zip(queries, answers, strict=True):
                    _count_bounded(counts, query, told, backend)
            # sessions of Spark stay in Java as long as Python's objects of them, which are in cycles: after
            # 2,000 queries they were 1.9 GB, and a third of Java's time went into looking through them
            gc.collect()
    return counts


@contextmanager
def _lanes(seed: int, backend: str) -> Iterator[SimpleQueue[tuple[Arena, Session]]]:
    """For each thread the rows of a seed: DuckDB's and a session's."""
    lanes: SimpleQueue[tuple[Arena, Session]] = SimpleQueue()
    for _ in range(LANES):
        arena = Arena.of(seed // OF_A_VARIANT % VARIANTS)
        lanes.put((arena, bounded_session(arena.tables, backend)))
    yield lanes
    for _ in range(LANES):
        arena, session = lanes.get()
        session.close()
        arena.close()


def _in_a_lane(lanes: SimpleQueue[tuple[Arena, Session]], query: Generated) -> tuple[str, str]:
    """Return how much of a query the backend computed, and what came of it; nothing where it has more than one
    right answer.
    """
    if _no_answer(query):
        return "", ""
    lane = lanes.get()
    try:
        return _bounded_outcome(*lane, query)
    finally:
        lanes.put(lane)


def _count_bounded(counts: Counts, query: Generated, answer: tuple[str, str], backend: str) -> None:
    share, told = answer
    if reason := _no_answer(query):
        counts.add(query, reason)
        return
    refused = told.startswith("BND-5101")  # the backend has no word for it
    if refused:
        counts.unanswered[told.splitlines()[0][:100]] += 1
    counts.manners[f"{backend} computes {share}"] += 1
    counts.add(query, "same" if told == "same" else "refused" if refused else "wrong")
    if told != "same" and not refused and counts.add_failure(told):
        print(f"\nseed {query.seed}, on {backend}\n{told}\n{query.tree.text()}", flush=True)


def _no_answer(query: Generated) -> str | None:
    """Return why a bounded query may have another answer, if it may."""
    if "relation: in time" in query.features:
        return "left out: the watermark of a table depends on the order of its rows"
    return None


def _bounded_outcome(arena: Arena, session: Session, query: Generated) -> tuple[str, str]:
    text, share = query.tree.text(), "nothing"
    try:
        planned = session.pipeline.plan(session.pipeline.bind(session.parse_one(text).node))
        share = _share(planned)
        found = session.pipeline.start(planned).final_rows(PATIENCE_S)
        expected = arena.expected(query.tree)
        if query.tree.sort != "some rows":
            compare(rows_of(found), run(arena.tables, text).rows if expected is None else expected, "bounded")
        elif expected is not None:
            compare_some(rows_of(found), expected, text, "bounded")
        if "query: top" in query.features and expected is not None:
            rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
            ordered = arena.ordered(query.tree)
            if [exact(Counter([row])) for row in rows] != [exact(Counter([row])) for row in ordered]:
                raise Wrong("the rows are in another order")
    except PenstockError as error:
        return share, f"{error.code} {error.message}"
    except (Wrong, AssertionError, ValueError, TypeError) as error:
        return share, f"{type(error).__name__} {error}"
    return share, "same"


def _share(planned: PlannedQuery) -> str:
    """How much of a query its backend computes. What it has no words for is our runtime's, above the rest."""
    if planned.graph is None:
        return "all of it"
    return "parts" if any(isinstance(node, BoundedInput) for node in planned.plan.walk()) else "nothing"


def main(arguments: Sequence[str]) -> int:
    if arguments[0] == "--sum":
        counts = Counts()
        for path in arguments[1:]:
            counts.read(Path(path).read_text(encoding="utf-8").splitlines())
        counts.print_table()
        return 0
    # most of the time of a query is Python's: a collection of all that the engine has made costs a tenth of it
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    first, last = int(arguments[0]), int(arguments[1])
    backend = next((word.removeprefix("--") for word in arguments[2:]), None)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    counts = Counts()
    try:
        if backend is None:
            compare_streams(first, last, counts)
        else:
            compare_backend(first, last, backend, counts)
    except KeyboardInterrupt:
        print(f"stopped after {counts.outcomes.total()} queries")
    counts.print()
    counts.print_table()
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
