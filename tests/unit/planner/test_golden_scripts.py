"""Golden scripts of the frontend: good statements become plans, bad ones become errors with a place and a
hint.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.planner.statements.script import parse_script
from tests.harness.case_files import case_files
from tests.harness.golden import check_golden, read_cases
from tests.unit.planner.frontend import run_statements, sample_catalog

SCRIPTS = Path(__file__).parent / "scripts"


def run_case(text: str) -> str:
    return "\n\n".join(run_statements(text, sample_catalog()))


def run_bad_case(text: str) -> str:
    return "accepted:\n" + run_case(text)


def show_nodes(text: str) -> str:
    return "\n".join(repr(statement.node) for statement in parse_script(text))


@pytest.mark.parametrize("path", case_files(SCRIPTS, "plan_*.sql"), ids=lambda path: path.stem)
def test_plans(path: Path) -> None:
    check_golden(path, run_case)


@pytest.mark.parametrize("path", case_files(SCRIPTS, "nodes_*.sql"), ids=lambda path: path.stem)
def test_statement_nodes(path: Path) -> None:
    check_golden(path, show_nodes)


@pytest.mark.parametrize("path", case_files(SCRIPTS, "bad_*.sql"), ids=lambda path: path.stem)
def test_bad_inputs(path: Path) -> None:
    check_golden(path, run_bad_case)


def test_every_bad_input_has_a_code_a_place_and_plain_words() -> None:
    cases = [(path.name, case) for path in case_files(SCRIPTS, "bad_*.sql") for case in read_cases(path)]
    assert len(cases) >= 100
    for name, case in cases:
        where = f"{name}:{case.line}"
        assert re.match(r"error\[SQL-1\d\d\d\]: .{1,140}\n", case.expected), where
        assert re.search(r"^ +\| +\^+$|^ +\| \^+$", case.expected, re.MULTILINE), where
        assert not re.search(r"Traceback|None\b|object at 0x|<class|sqlglot|lark|Token\(", case.expected), (
            where
        )
        assert len(case.expected.splitlines()) <= 12, where
