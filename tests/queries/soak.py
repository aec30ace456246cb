"""Many random queries against DuckDB: ``python -m tests.queries.soak 0 1000`` runs seeds 0 to 999 and prints those that differ."""

from __future__ import annotations

import sys

from catalog.errors import PenstockError
from tests.queries.answers import duckdb_answer, streaming_answer, streaming_session
from tests.queries.random_queries import RandomQueries


def main(first: int, last: int) -> int:
    session = streaming_session()
    wrong = refused = 0
    try:
        for seed in range(first, last):
            query = RandomQueries(seed).query()
            expected = duckdb_answer(query)
            if expected is None:
                continue
            for parallelism in (1, 2):
                try:
                    found = streaming_answer(session, query, parallelism)
                except PenstockError as error:
                    if error.code == "SQL-1601":
                        refused += 1
                        print(f"refused {seed}: {query}\n{error.render()}")
                        break
                    wrong += 1
                    print(f"FAILED {seed} × {parallelism}: {query}\n{error.render()}")
                    break
                if found != expected:
                    wrong += 1
                    print(f"DIFFERS {seed} × {parallelism}: {query}\nmissing {expected - found}\nextra {found - expected}")
                    break
    finally:
        session.close()
    print(f"{last - first} queries, {wrong} wrong, {refused} refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
