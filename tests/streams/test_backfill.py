"""WITH HISTORY gives what a replay of everything gives: whatever was there before, comes while it is loaded, or comes after, and whoever dies when.

Each query begins over some files at 2 subtasks, more files come while its history is loaded, it is stopped, goes on at 3, more files come, and its
input ends. What it has written is folded and compared with a replay of all files, and where no row is late with DuckDB.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.streams.backfill import (
    QUERIES,
    Past,
    computed,
    declare,
    declare_sink,
    folded,
    has_read,
    is_live,
    random_of,
    replayed,
    session_for,
    tables_of,
    wait_until,
)


def three_acts(past: Past, query: str, out: Path, state: Path, hint: str = "") -> None:
    """Begin with history, stop, go on at another parallelism, end the input; files come in between."""
    random, reads = random_of(past.seed), tables_of(query)
    for _ in range(random.randrange(4)):
        past.come("a"), past.come("b")
    before = dict(past.written) if past.written else {"a": 0, "b": 0}
    statement = f"INSERT INTO out {query} WITH HISTORY" if not hint else f"INSERT INTO out {query.replace('SELECT', f'SELECT {hint}', 1)}"
    session = session_for(2, state)
    try:
        declare(session, past, watched=True)
        declare_sink(session, query, out)
        job = session.execute(statement).job
        past.come("a")  # while the history is loaded, or just before, or just after
        wait_until(job, lambda: is_live(job))
        past.come("b")
        wait_until(job, lambda: has_read(job, past, reads, before))
        job.stop()
        assert job.wait(60) and job.error is None, job.error
    finally:
        session.close()
    before = dict(past.written)
    past.come("a"), past.come("b")
    session = session_for(3, state)
    try:
        declare(session, past, watched=True)
        declare_sink(session, query, out)
        job = session.execute(statement).job
        wait_until(job, lambda: has_read(job, past, reads, before))
        assert not any(operator.name.startswith("history") for operator in job.metrics().operators), "history was loaded again"
        job.stop(drain=True)
        assert job.wait(60) and job.error is None, job.error
    finally:
        session.close()


@pytest.mark.parametrize("name", QUERIES)
def test_three_acts(name: str, tmp_path: Path) -> None:
    seed = sum(name.encode())
    past = Past(tmp_path / "data", seed, late=0.05 * (seed % 2), file_format=("parquet", "csv")[seed // 2 % 2])
    three_acts(past, QUERIES[name], tmp_path / "out", tmp_path / "state", "/*+ BACKFILL('duckdb') */" if seed % 3 == 0 else "")
    got = folded(tmp_path / "out")
    assert got == replayed(past, QUERIES[name], tmp_path / "replay")
    if not past.late:
        assert got == computed(past, QUERIES[name])
