"""``bounded.backend = auto``: which backend runs a plan, why, and what is started for it. No test starts Spark:
whether it is installed and whether it is up are said by the tests.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.client.connection import Connection
from penstock.engine.bounded import backend_choice
from penstock.engine.bounded.backend_choice import size_text
from penstock.engine.bounded.spark.backend import SparkBackend
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.planner.statements.nodes import Query
from penstock.repl.cli import main

SMALL = "its local inputs have 10 bytes, below bounded.auto.local-size, and no Spark is up yet"


class Spark:
    """What the tests say of Spark; ``warmed`` counts starts beside a session."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.missing: str | None = None
        self.up = False
        self.warmed = 0
        monkeypatch.setattr(backend_choice, "missing_for_spark", lambda: self.missing)
        monkeypatch.setattr(SESSIONS, "is_up", lambda keep_alive_ms: self.up)
        monkeypatch.setattr(SparkBackend, "warm", lambda backend: self._warm())

    def _warm(self) -> None:
        self.warmed += 1


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    return Spark(monkeypatch)


@pytest.fixture
def connection(tmp_path: Path, spark: Spark) -> Iterator[Connection]:
    (tmp_path / "t.csv").write_text("a,s\n1,x\n2,\n", encoding="utf-8")
    with penstock.connect() as made:
        assert made.session.settings.get("bounded.backend") == "auto"
        made.execute(table("t", tmp_path / "t.csv"))
        yield made


def table(name: str, path: object, more: str = "") -> str:
    options = f"'connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}'{more}"
    return f"CREATE TABLE {name} (a BIGINT, s STRING) WITH ({options})"


def who(connection: Connection, query: str) -> str:
    """Return the line of EXPLAIN that names the backend."""
    lines = [row[0] for row in connection.execute(f"EXPLAIN PHYSICAL {query}").fetchall()]
    (line,) = [line for line in lines if "on duckdb" in line or "on spark" in line]
    return line.removesuffix(":")


def chosen(connection: Connection, query: str) -> tuple[str, str]:
    """Return the choice without an EXPLAIN, which would list the files of a store."""
    session = connection.session
    (statement,) = session.parse(query)
    assert isinstance(statement.node, Query)
    plan = session.pipeline.plan(session.pipeline.bind(statement.node)).plan
    choice = session.state.backends.choose(plan.inputs[0])
    return choice.name, choice.reason


COUNT = "SELECT COUNT(*) FROM t"


def test_small_local_files_are_duckdbs_while_no_spark_is_up(connection: Connection, spark: Spark) -> None:
    assert who(connection, COUNT) == f"on duckdb (auto: {SMALL})".replace("10 bytes", "11 bytes")
    assert connection.execute(COUNT).fetchall() == [(2,)]
    spark.up = True
    assert who(connection, COUNT) == "on spark (auto: Spark is up)"
    # named: no reason is needed, whatever is up
    connection.execute("SET 'bounded.backend' = 'duckdb'")
    assert who(connection, COUNT) == "on duckdb"


@pytest.mark.parametrize(
    ("size", "why"),
    [
        ("0", "bounded.auto.local-size is 0"),
        ("11 b", "its inputs have 11 bytes and more (bounded.auto.local-size)"),
    ],
)
def test_other_files_are_sparks(connection: Connection, size: str, why: str) -> None:
    connection.execute(f"SET 'bounded.auto.local-size' = '{size}'")
    assert who(connection, COUNT) == f"on spark (auto: {why})"


def test_inputs_are_added_up_and_what_is_elsewhere_is_sparks(connection: Connection, tmp_path: Path) -> None:
    connection.execute("SET 'bounded.auto.local-size' = '12 b'")
    joined = "SELECT COUNT(*) FROM t JOIN u ON t.a = u.a"
    connection.execute(table("u", tmp_path / "t.csv"))
    assert who(connection, joined).startswith("on spark (auto: its inputs have 12 bytes and more")
    connection.execute("DROP TABLE u")
    connection.execute(table("u", "s3://nowhere/t.csv"))
    connection.execute("RESET 'bounded.auto.local-size'")
    assert chosen(connection, joined) == (
        "spark",
        "u is no local file, nor are its rows in this process",
    )


def test_rows_of_this_process_are_local(connection: Connection) -> None:
    connection.register("arrow", pa.table({"a": [1, 2]}))
    connection.register("rows", [{"a": 1}])
    assert "its local inputs have 16 bytes" in who(connection, "SELECT SUM(a) FROM arrow")
    assert who(connection, "SELECT SUM(a) FROM `rows`").startswith("on duckdb")
    connection.execute("SET 'bounded.auto.local-size' = '16 b'")
    assert who(connection, "SELECT SUM(a) FROM arrow").startswith("on spark")


def test_without_spark_duckdb_runs_any_size_and_we_run_what_it_has_no_words_for(
    connection: Connection, spark: Spark
) -> None:
    connection.execute("SET 'bounded.auto.local-size' = '0'")
    spark.missing = "Spark is not installed: pip install 'penstock[spark]'"
    assert who(connection, COUNT) == f"on duckdb (auto: {spark.missing})"
    assert connection.execute(COUNT).fetchall() == [(2,)]
    # a function of Spark's that DuckDB lacks: our own runtime computes it over DuckDB's rows
    cursor = connection.execute("SELECT INITCAP(s) FROM t WHERE s IS NOT NULL")
    assert cursor.fetchall() == [("X",)]


def test_what_duckdb_has_no_words_for_is_sparks_where_it_is_installed(connection: Connection) -> None:
    assert who(connection, "SELECT INITCAP(s) FROM t") == "on spark (auto: duckdb has no words for it)"


def test_a_missing_file_starts_no_spark(connection: Connection, tmp_path: Path) -> None:
    (tmp_path / "t.csv").unlink()
    with pytest.raises(penstock.Error, match="DAT-4101"):
        connection.execute(COUNT).fetchall()


def test_a_shell_starts_spark_beside_the_first_small_query_and_a_program_does_not(
    connection: Connection, spark: Spark
) -> None:
    connection.execute(COUNT).fetchall()
    assert spark.warmed == 0
    connection.session.state.warms_backend = True
    who(connection, COUNT)
    assert spark.warmed == 0  # EXPLAIN runs nothing
    connection.execute(COUNT).fetchall()
    connection.execute(COUNT).fetchall()
    assert spark.warmed == 1


def test_a_shell_starts_no_spark_that_is_missing_or_not_asked_for(
    connection: Connection, spark: Spark, tmp_path: Path
) -> None:
    connection.session.state.warms_backend = True
    spark.missing = "no"
    connection.execute(table("u", tmp_path / "t.csv"))
    spark.missing = None
    connection.execute("SET 'bounded.backend' = 'duckdb'")
    connection.execute(table("v", tmp_path / "t.csv"))
    assert spark.warmed == 0
    connection.execute("RESET 'bounded.backend'")
    connection.execute(table("w", tmp_path / "t.csv"))
    assert spark.warmed == 1


def test_verify_and_history_name_the_backend_that_was_chosen(connection: Connection, tmp_path: Path) -> None:
    connection.execute(table("past", tmp_path / "t.csv", ", 'source.replay' = 'true'"))
    note = connection.execute("VERIFY SELECT COUNT(*) FROM past AGAINST BATCH").note
    assert note is not None and note.startswith("equal: 1 row; ") and "duckdb" in note
    connection.execute("CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole')")
    insert = "INSERT INTO hole SELECT COUNT(*) FROM past WITH HISTORY"
    explained = "\n".join(row[0] for row in connection.execute(f"EXPLAIN PHYSICAL {insert}").fetchall())
    assert "computed by duckdb" in explained
    # its workers hold Spark's cores, so Spark cannot load the history besides
    connection.execute("SET 'bounded.auto.local-size' = '0'")
    connection.execute("SET 'deployment' = 'spark'")
    explained = "\n".join(row[0] for row in connection.execute(f"EXPLAIN PHYSICAL {insert}").fetchall())
    assert "computed by duckdb" in explained


def test_a_cut_does_not_depend_on_the_size_of_files(connection: Connection) -> None:
    """A job's operators, whose ids checkpoints hold, are the same whoever computes its bounded parts."""
    connection.execute(
        "CREATE TABLE ticks (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1')"
    )
    joined = "SELECT ticks.a, d.s FROM ticks JOIN (SELECT a, INITCAP(s) AS s FROM t) AS d ON ticks.a = d.a"
    texts = []
    for size in ("64 mb", "0"):
        connection.execute(f"SET 'bounded.auto.local-size' = '{size}'")
        rows = connection.execute(f"EXPLAIN PHYSICAL {joined}").fetchall()
        texts.append(
            [row[0] for row in rows if "(" in row[0] and " on " not in row[0] and "SELECT" not in row[0]]
        )
    assert texts[0] == texts[1]


def test_conninfo_says_who_computes_what_is_bounded(
    capsys: pytest.CaptureFixture[str], spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*settings: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("\\conninfo\n"))
        words = [word for setting in settings for word in ("--set", setting)]
        assert main(["--interactive", *words]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "bounded queries" in line]
        return line.removeprefix("bounded queries: ")

    assert said() == (
        "spark, which is not started yet; duckdb for local inputs below 64 MB until then "
        "(bounded.backend = auto)"
    )
    assert said("bounded.backend=duckdb") == "duckdb (bounded.backend = duckdb)"
    assert said("bounded.auto.local-size=0") == "spark, which is not started yet (bounded.backend = auto)"
    spark.up = True
    assert said() == "spark, which is up (bounded.backend = auto)"
    spark.missing = "Spark is not installed"
    assert said() == "duckdb: Spark is not installed (bounded.backend = auto)"


def test_sizes_for_people() -> None:
    sizes = (1, 900, 1 << 10, 1536, 64 << 20, 5 << 29)
    assert [size_text(size) for size in sizes] == [
        "1 byte",
        "900 bytes",
        "1 KB",
        "1.5 KB",
        "64 MB",
        "2560 MB",
    ]
