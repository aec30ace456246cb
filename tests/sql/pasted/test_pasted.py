"""Statements as people paste them from the documentation of Flink, Spark and Calcite, written from memory:
which of them run here, and with what the others are refused.

A file of ``dialects/`` has two lines for each: the statement, and ``-> runs`` or the first line of the error.
Statements that declare something are run; each fourth query is planned as a stream, and at length all are
planned and executed.
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
from tests.harness.length import AT_LENGTH

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


def _chosen(cases: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the cases of this run: in brief each fourth of the queries, with all declarations."""
    if AT_LENGTH or os.environ.get("ACCEPT") == "1":
        return cases
    queries = ("SELECT", "WITH", "(SELECT", "VALUES")
    return [case for number, case in enumerate(cases) if number % 4 == 0 or not case[0].startswith(queries)]


@pytest.mark.longer
@pytest.mark.parametrize("path", DIALECTS, ids=lambda path: path.stem)
def test_each_statement_runs_or_is_refused_as_expected(path: Path, session: Session) -> None:
    cases = _chosen(read(path))
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
