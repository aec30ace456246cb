"""Tables, state and savepoints in directories whose names mean something to a shell, a URL or a pattern: a
name is a name.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock

NAMES = [
    "my data",
    "é日本",
    "a%20b",
    "[x]*?",
    "{a,b}",
    "a'b\"c",
    "a#b;c@1-2",
    "back\\slash",
    "two\nlines",
    " lead ",
    "k=v",
]


def quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


@pytest.mark.parametrize("name", NAMES)
def test_a_job_writes_there_and_is_known_again(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    made_in, out, state = place / "in", place / "out", place / "state"
    made_in.mkdir(parents=True)
    (made_in / f"{name.strip()}.csv").write_text("k,n\nx,1\ny,2\n")
    settings = {
        "execution.checkpointing.dir": str(state),
        "table.dml-sync": "true",
        "bounded.backend": "duckdb",
    }
    columns = "(k STRING, n INT) WITH ('connector' = 'filesystem', 'path' = "
    script = f"""
    CREATE TABLE t {columns}{quoted(made_in)}, 'format' = 'csv', 'source.replay' = 'true');
    CREATE TABLE o (k STRING, n INT) PARTITIONED BY (k) WITH ('connector' = 'filesystem', 'path' = {quoted(out)}, 'format' = 'parquet');
    CREATE TABLE b {columns}{quoted(made_in)}, 'format' = 'csv');
    """
    for act in (1, 2):  # the second time the state says that the job has ended, and no row is written twice
        with penstock.connect(settings=settings) as connection:
            connection.executescript(script)
            connection.execute("INSERT INTO o SELECT k, n FROM t")
            for mode in ("batch", "streaming"):
                connection.execute(f"SET 'execution.runtime-mode' = '{mode}'")
                assert sorted(connection.execute("SELECT k, n FROM o").fetchall()) == [("x", 1), ("y", 2)], (
                    act,
                    mode,
                )
                assert sorted(connection.execute("SELECT k, n FROM b").fetchall()) == [("x", 1), ("y", 2)]
    assert list(state.iterdir()) and list(out.glob("k=[xy]/*.parquet"))
