"""EXPLAIN of every query in ``queries/`` and of one for each construct: changelog modes, keys, state
bounds; chains with their edges.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.client.session import Session
from penstock.planner.statements.nodes import Explain, ExplainStage, Insert, Query
from penstock.repl.launch.script_runner import substitute
from tests.harness.case_files import case_files
from tests.harness.golden import check_golden, read_cases

ROOT = Path(__file__).parents[3]
PLANS = Path(__file__).parent / "plans"
STAGES = (ExplainStage.OPTIMIZED, ExplainStage.PHYSICAL)
TABLES = """
CREATE TEMPORARY TABLE clicks (id BIGINT NOT NULL, k INT, s STRING, v BIGINT, x DECIMAL(8, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen');
CREATE TEMPORARY TABLE views (id BIGINT NOT NULL, k INT, s STRING, v BIGINT, x DECIMAL(8, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen');
CREATE TEMPORARY TABLE orders (id BIGINT NOT NULL, k INT, s STRING, v BIGINT, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ('connector' = 'filesystem', 'path' = 'orders', 'format' = 'debezium-json', 'source.monitor-interval' = '1 s');
"""
SETTINGS = {
    "execution.runtime-mode": "automatic",
    "parallelism.default": "2",
    "bounded.backend": "duckdb",
    "execution.checkpointing.dir": "/nonexistent",
}


# of the pipelines: no server is asked before a job starts
VARIABLES = {
    "kafka": "localhost:9092",
    "flights": "queries/data/flights",
    "delta": "out/delays",
    "until": "latest-offset",
    "postgres": "postgresql://localhost/flights",
    "postgres_host": "localhost",
    "postgres_port": "5432",
    "postgres_user": "reader",
    "database": "flights",
}


def explained(session: Session, text: str) -> str:
    """Declare what a text declares, and explain the one query it has."""
    for statement in session.parse(text):
        if isinstance(statement.node, Query | Insert):
            from penstock.client.statements.explain import explain_statement

            lines = explain_statement(
                session.state, session.pipeline, Explain(STAGES, statement.node)
            ).final_rows()
            return "\n".join(lines.column(0).to_pylist())
        session.run(statement)
    raise AssertionError("there is no query")


def of_construct(text: str) -> str:
    session = Session(SETTINGS)
    session.register("dims", pa.table({"k": pa.array([1], pa.int32()), "name": ["a"]}))
    try:
        return explained(session, TABLES + text)
    finally:
        session.close()


def of_script(name: str) -> str:
    session = Session(SETTINGS)
    path = ROOT / "queries" / name
    tables = (path.parent / "tables.sql").read_text(encoding="utf-8") if path.parent.name == "nexmark" else ""
    try:
        text = substitute(tables + path.read_text(encoding="utf-8"), VARIABLES)
        text = text.replace("queries/data/", f"{ROOT}/queries/data/")
        lines = explained(session, text).replace(str(ROOT), "..")
        # ids are of the files' paths, which are this checkout's
        return re.sub(r" +\([0-9a-f]{16}\)$", "", lines, flags=re.MULTILINE)
    finally:
        session.close()


@pytest.mark.parametrize("name", ["constructs", "scripts"])
def test_golden(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(sqlite3.connect("parts.db")) as file:
        file.execute("CREATE TABLE parts (id INTEGER, name TEXT, price TEXT)")
    if name == "scripts" and os.environ.get("ACCEPT") == "1":
        (PLANS / name).write_text("====\n".join(f"{script}\n---\n" for script in scripts()), encoding="utf-8")
    check_golden(PLANS / name, of_construct if name == "constructs" else of_script)


def scripts() -> list[str]:
    paths = [
        path
        for path in case_files(ROOT / "queries", "**/*.sql")
        if path.name != "tables.sql" and path.parent.name not in ("duckdb", "tests")
    ]
    return sorted(str(path.relative_to(ROOT / "queries")) for path in paths)


def test_every_script_is_there() -> None:
    """ACCEPT=1 adds new ones."""
    found = [case.input.strip() for case in read_cases(PLANS / "scripts")]
    assert found == scripts(), "run again with ACCEPT=1 to explain new scripts, then read the diff"


def test_what_a_plan_must_say() -> None:
    """Every node says how rows change and every node with state what bounds it; chains say what travels
    between them.
    """
    cases = read_cases(PLANS / "constructs")
    assert len(cases) >= 60
    for case in cases:
        assert not case.expected.startswith("error["), case.input
        if "== physical ==" in case.expected.lower() and "on duckdb" not in case.expected:
            assert "insert-only" in case.expected or "updates" in case.expected, case.input
            assert "edge" in case.expected or "⤨" in case.expected or "──" in case.expected, case.input
    text = "\n".join(case.expected for case in cases)
    for words in (
        "state bounded",
        "state unbounded because",
        "insert-only",
        "updates",
        "key (",
        "partition(",
    ):
        assert words in text, words
