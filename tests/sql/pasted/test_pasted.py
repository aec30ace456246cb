"""Statements as people paste them from the documentation of Flink, Spark and Calcite, written from memory:
which of them run here, and with what the others are refused.

A file of ``dialects/`` has two lines for each: the statement, and ``-> runs`` or the first line of the error.
Queries are planned as streams here, and executed at length.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.planner.statements.nodes import ExecuteStatementSet, Insert, Query
from tests.harness.case_files import case_files

HERE = Path(__file__).parent
DIALECTS = case_files(HERE / "dialects", "*")
RUNS = "runs"
SETTINGS = {
    "execution.runtime-mode": "streaming",
    "bounded.backend": "duckdb",
    "table.dml-sync": "true",
    "restart-strategy.type": "none",
}
AT_EXECUTION = ("RUN-", "CON-")
"""Codes of values and of what a connector finds: planning does not meet them."""


def read(path: Path) -> list[tuple[str, str]]:
    """Return the statements of a file, each with what is expected of it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    cases = list(zip(lines[::2], lines[1::2], strict=True))
    assert all(not text.startswith("->") and told.startswith("-> ") for text, told in cases), path
    return [(text, told.removeprefix("-> ")) for text, told in cases]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.chdir(tmp_path)
    session = Session(SETTINGS)
    for statement in session.parse((HERE / "tables.sql").read_text(encoding="utf-8")):
        session.run(statement)
    yield session
    session.close()


def outcome(session: Session, text: str, *, execute: bool) -> str:
    """Plan or execute one statement: ``runs``, or the code and the message of its error."""
    try:
        [statement] = session.parse(text)
        if execute or not isinstance(statement.node, Query | Insert | ExecuteStatementSet):
            result = session.run(statement)
            if result.has_rows:
                result.final_rows(60)
        else:
            session.pipeline.plan(session.pipeline.bind(statement.node))
    except PenstockError as error:
        return f"{error.code} {error.message}".replace("\n", " ")
    return RUNS


@pytest.mark.parametrize("path", DIALECTS, ids=lambda path: path.stem)
def test_each_statement_runs_or_is_refused_as_expected(path: Path, session: Session) -> None:
    cases = read(path)
    found = [(text, outcome(session, text, execute=False)) for text, _ in cases]
    if os.environ.get("ACCEPT") == "1":
        path.write_text("".join(f"{text}\n-> {told}\n" for text, told in found), encoding="utf-8")
        return
    different = [
        f"{text}\n  expected {old}\n  found    {new}"
        for (text, old), (_, new) in zip(cases, found, strict=True)
        if old != new
    ]
    assert not different, "\n".join(different) + "\nrun again with ACCEPT=1 to accept"


@pytest.mark.at_length
@pytest.mark.parametrize("path", DIALECTS, ids=lambda path: path.stem)
def test_what_is_planned_is_executed(path: Path, session: Session) -> None:
    for text, expected in read(path):
        found = outcome(session, text, execute=True)
        if expected == RUNS:
            assert found == RUNS or found.startswith(AT_EXECUTION), text


def test_most_of_300_statements_run() -> None:
    kinds = Counter(told == RUNS for path in DIALECTS for _, told in read(path))
    assert kinds.total() >= 300
    assert kinds[True] > kinds[False]
