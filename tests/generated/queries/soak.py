"""Many generated queries: ``python -m tests.generated.queries.soak 0 2000`` runs seeds 0 to 1999 and reports those
that go wrong, each made small.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.generated.queries.generated.declared import declared
from tests.generated.queries.generated.queries import generated
from tests.generated.queries.generated.report import kind_of, report
from tests.generated.queries.generated.trial import Arena, Manner, outcome

REPORTED_OF_A_KIND = 2
VARIANTS = 25


def main(first: int, last: int) -> int:
    arenas: dict[int, Arena] = {}
    told_of: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for query in generated(first, last):
        variant = query.seed % VARIANTS
        arena = arenas.setdefault(variant, Arena.of(variant))
        manner = Manner.of(query.seed)
        told = outcome(arena, query.tree, manner)
        name = told if told in ("same", "skipped") else declared(told)
        told_of[name or "wrong"] += 1
        if name is None:
            wrong[kind_of(told)] += 1
            if wrong[kind_of(told)] <= REPORTED_OF_A_KIND:
                print(f"\nseed {query.seed}\n{report(arena, query.tree, manner, told)}", flush=True)
    for arena in arenas.values():
        arena.close()
    print(f"{last - first} queries: {', '.join(f'{count} {name}' for name, count in told_of.most_common())}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
