"""Statements as people paste them from the documentation of Flink, Spark and Calcite, written from memory:
which of them run here, and with what the others are refused.

A file of ``dialects/`` has two lines for each: the statement, and ``-> runs`` or the first line of the error.
A refused one has a third: ``=>`` and the statement as its hint says to write it, or ``=> nothing`` where the
hint says to leave it out. Those run, or stop at what is not there, as a broker. Statements that declare
something are run; each fourth query is planned as a stream, and at length all are planned and executed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.planner.statements.nodes import ExecuteStatementSet, Insert, Query
from tests.harness.case_files import case_files
from tests.harness.length import AT_LENGTH

HERE = Path(__file__).parent
DIALECTS = case_files(HERE / "dialects", "*")
RUNS, NOTHING = "runs", "nothing"
SETTINGS = {
    "execution.runtime-mode": "streaming",
    "bounded.backend": "duckdb",
    "table.dml-sync": "true",
    "restart-strategy.type": "none",
}
AT_EXECUTION = ("RUN-", "CON-", "DAT-4101")
"""Codes of values, of what a connector finds and of files that are not there: planning does not meet them."""


class Case(NamedTuple):
    """A statement, what is expected of it, and what its hint makes of it: empty for one that runs."""

    text: str
    expected: str
    mended: str


def read(path: Path) -> list[Case]:
    """Return the statements of a file."""
    cases: list[Case] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-> "):
            cases[-1] = cases[-1]._replace(expected=line.removeprefix("-> "))
        elif line.startswith("=> "):
            cases[-1] = cases[-1]._replace(mended=line.removeprefix("=> "))
        else:
            cases.append(Case(line, "", ""))
    assert all(case.expected for case in cases), path
    return cases


def written(cases: Iterable[Case]) -> str:
    """Return a file of statements."""
    return "".join(
        f"{case.text}\n-> {case.expected}\n" + (f"=> {case.mended}\n" if case.mended else "")
        for case in cases
    )


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


def _chosen(cases: list[Case]) -> list[Case]:
    """Return the cases of this run: in brief each fourth of the queries, with all declarations."""
    if AT_LENGTH or os.environ.get("ACCEPT") == "1":
        return cases
    queries = ("SELECT", "WITH", "(SELECT", "VALUES")
    return [case for number, case in enumerate(cases) if number % 4 == 0 or not case.text.startswith(queries)]


@pytest.mark.longer
@pytest.mark.parametrize("path", DIALECTS, ids=lambda path: path.stem)
def test_each_statement_runs_or_is_refused_as_expected(path: Path, session: Session) -> None:
    cases = _chosen(read(path))
    found = [case._replace(expected=outcome(session, case.text, execute=False)) for case in cases]
    if os.environ.get("ACCEPT") == "1":
        path.write_text(written(found), encoding="utf-8")
        return
    different = [
        f"{old.text}\n  expected {old.expected}\n  found    {new.expected}"
        for old, new in zip(cases, found, strict=True)
        if old != new
    ]
    assert not different, "\n".join(different) + "\nrun again with ACCEPT=1 to accept"


@pytest.mark.parametrize("path", DIALECTS, ids=lambda path: path.stem)
def test_what_hints_say_runs(path: Path, session: Session) -> None:
    wrong = []
    for text, expected, mended in read(path):
        assert bool(mended) == (expected != RUNS), (
            f"a refused statement, and it alone, has a third line: {text}"
        )
        if mended in ("", NOTHING):
            continue
        try:
            found = [outcome(session, one.text, execute=False) for one in session.parse(mended)]
        except PenstockError as error:
            found = [f"{error.code} {error.message}"]
        if any(one != RUNS and not one.startswith(AT_EXECUTION) for one in found):
            wrong.append(f"{text}\n  {mended}\n  {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", DIALECTS, ids=lambda path: path.stem)
def test_each_refusal_has_a_hint(path: Path, session: Session) -> None:
    for text, expected, _ in read(path):
        if expected != RUNS:
            with pytest.raises(PenstockError) as refused:
                [statement] = session.parse(text)
                result = session.run(statement)
                if result.has_rows:
                    result.final_rows(60)
            assert refused.value.hint, text


@pytest.mark.at_length
@pytest.mark.parametrize("path", DIALECTS, ids=lambda path: path.stem)
def test_what_is_planned_is_executed(path: Path, session: Session) -> None:
    for text, expected, _ in read(path):
        found = outcome(session, text, execute=True)
        if expected == RUNS:
            assert found == RUNS or found.startswith(AT_EXECUTION), text


def test_most_of_300_statements_run() -> None:
    kinds = Counter(case.expected == RUNS for path in DIALECTS for case in read(path))
    assert kinds.total() >= 600
    assert kinds[True] > kinds[False]
