"""Many generated queries, each run twice: ``python -m tests.generated.queries.soak 0 2000`` runs seeds 0 to 1999.

The second time there are two slots, and the job is stopped and restored in the middle. With ``--spark`` each
twentieth query is asked of Spark instead. What goes wrong is reported, made small. Then come the counts: of
answers, of queries without an answer by reason, of constructs, and the constructs that no query had.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.generated.queries.answers import rows_of
from tests.generated.queries.generated.bounded import bounded_session
from tests.generated.queries.generated.declared import declared
from tests.generated.queries.generated.queries import Generated, generated
from tests.generated.queries.generated.relations import run
from tests.generated.queries.generated.report import kind_of, report
from tests.generated.queries.generated.trial import Arena, Manner, Wrong, compare, outcome, plain
from tests.harness.patience import PATIENCE_S

REPORTED_OF_A_KIND = 2
VARIANTS = 35
OF_A_VARIANT = 50  # seeds in a row over the same rows
SPARK_EVERY = 20


@dataclass
class Counts:
    """What came of the queries so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    offered: set[str] = field(default_factory=set)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, query: Generated, name: str) -> None:
        self.outcomes[name] += 1
        self.met.update(query.features)
        self.offered |= query.offered

    def print(self) -> None:
        """Print the counts, each kind as one line of JSON that other runs can be added to."""
        for name in ("outcomes", "unanswered", "met"):
            print(f"{name} {json.dumps(dict(getattr(self, name).most_common()))}")
        print(f"never met {json.dumps(sorted(self.offered - set(self.met)))}")


def arenas(first: int, last: int) -> Iterator[tuple[Arena, Iterator[Generated]]]:
    """The queries with the rows they are run over, one variant after the other."""
    begin = first
    while begin < last:
        end = min(last, begin - begin % OF_A_VARIANT + OF_A_VARIANT)
        arena = Arena.of(begin // OF_A_VARIANT % VARIANTS)
        yield arena, generated(begin, end)
        arena.close()
        begin = end


def compare_streams(first: int, last: int) -> Counts:
    """Hold queries against DuckDB, in two manners."""
    counts = Counts()
    for arena, queries in arenas(first, last):
        for query in queries:
            for way, manner in (("once", Manner.of(query.seed)), ("resumed", Manner.resumed(query.seed))):
                told = outcome(arena, query.tree, manner)
                name = told if told in ("same", "skipped") else declared(told)
                counts.add(query, f"{way}: {name or 'wrong'}")
                if name is None:
                    counts.wrong[kind_of(told)] += 1
                    if counts.wrong[kind_of(told)] <= REPORTED_OF_A_KIND:
                        text = report(arena, query.tree, manner, told)
                        print(f"\nseed {query.seed}, {way}\n{text}", flush=True)
        counts.unanswered.update(arena.unanswered)
    return counts


def compare_spark(first: int, last: int) -> Counts:
    """Hold each twentieth query against Spark."""
    counts = Counts()
    for arena, queries in arenas(first, last):
        session: Session | None = None
        for query in queries:
            if query.seed % SPARK_EVERY or query.tree.sort == "some rows":
                continue
            session = session or bounded_session(arena.tables, "spark")
            text = query.tree.text()
            try:
                bounded = plain(rows_of(session.execute(text).final_rows(PATIENCE_S)))
                compare(run(arena.tables, text).rows, bounded, text)
                counts.add(query, "same")
            except (PenstockError, Wrong) as error:
                # BND-5101: Spark has no word for it
                refused = isinstance(error, PenstockError) and error.code == "BND-5101"
                counts.add(query, "refused" if refused else "wrong")
                if refused:
                    counts.unanswered[str(error).splitlines()[0][:80]] += 1
                else:
                    counts.wrong[kind_of(f"{type(error).__name__} {error}")] += 1
                    print(f"\nseed {query.seed}, on Spark\n{error}\n{text}", flush=True)
        if session is not None:
            session.close()
    return counts


def main(first: int, last: int, spark: bool) -> int:
    counts = compare_spark(first, last) if spark else compare_streams(first, last)
    counts.print()
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), "--spark" in sys.argv[3:]))
