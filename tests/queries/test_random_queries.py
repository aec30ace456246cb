"""Random subqueries, set operations and grouping sets: our streaming answer, in one task and in two, is DuckDB's answer to the same text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from client.session import Session
from tests.queries.answers import duckdb_answer, streaming_answer, streaming_session
from tests.queries.random_queries import RandomQueries


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = streaming_session()
    yield session
    session.close()


@pytest.mark.parametrize("first", range(0, 150, 15))
def test_same_rows(session: Session, first: int) -> None:
    for seed in range(first, first + 15):
        query = RandomQueries(seed).query()
        expected = duckdb_answer(query)
        if expected is None:
            continue
        for parallelism in (1, 2) if seed % 3 == 0 else (2,):
            found = streaming_answer(session, query, parallelism)
            assert found == expected, f"seed {seed} × {parallelism}: {query}\nmissing {expected - found}\nextra {found - expected}"


def test_bounded_backend() -> None:
    session = streaming_session(**{"execution.runtime-mode": "batch", "bounded.backend": "duckdb"})
    try:
        for seed in range(100, 115):
            query = RandomQueries(seed).query()
            expected = duckdb_answer(query)
            assert expected is None or streaming_answer(session, query, 1) == expected, query
    finally:
        session.close()


def test_every_construct_is_met() -> None:
    texts = " ".join(RandomQueries(seed).query() for seed in range(150))
    for words in (
        "NOT IN (SELECT",
        "NOT EXISTS",
        "INTERSECT ALL",
        "EXCEPT ALL",
        "EXCEPT SELECT",
        "ROLLUP",
        "CUBE",
        "GROUPING SETS",
        "HAVING",
        " OR ",
        "grouping(",
    ):
        assert words in texts, words
