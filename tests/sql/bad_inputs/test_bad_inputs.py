"""Bad inputs of every kind but pure SQL text (those are in tests/unit/planner): each answers with a code, a
place, plain words and a way out.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.harness.golden import check_golden, read_cases
from tests.sql.bad_inputs.figures import figures
from tests.sql.bad_inputs.inputs import make_files, run_script, run_words, steady
from tests.sql.bad_inputs.programs import run_program
from tests.sql.bad_inputs.texts import TEXTS, WITHIN

SCRIPTS = Path(__file__).parent / "scripts"
RUNNERS = {
    "streaming": lambda text: run_script(text, execution__runtime_mode="streaming"),
    "batch": lambda text: run_script(text, execution__runtime_mode="batch"),
    "session": run_script,
    "words": run_words,
    "program": run_program,
    "text": lambda name: run_script(TEXTS[name]),
}
PLACED = ("SQL-", "RUN-")
UNPLACED = ("commands_words", "python_program")  # words and calls have no text to point into


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad")
    make_files(path)
    return path


@pytest.mark.parametrize("path", sorted(SCRIPTS.iterdir()), ids=lambda path: path.stem)
def test_golden(path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    runner = RUNNERS[path.stem.rpartition("_")[2]]
    check_golden(path, lambda text: steady(runner(text)))


def test_every_answer_keeps_the_bar() -> None:
    cases = [(path.name, case) for path in sorted(SCRIPTS.iterdir()) for case in read_cases(path)]
    assert len(cases) >= 120
    for name, case in cases:
        where = f"{name}:{case.line}"
        codes = re.findall(r"^(?:\S+ )?error\[([A-Z]{3}-\d{4})\]: (.{1,120})$", case.expected, re.MULTILINE)
        codes += [
            (code, text)
            for code, text in re.findall(
                r'"code": "([A-Z]{3}-\d{4})".*"message": "(.{1,120}?)"', case.expected
            )
        ]
        assert codes, where
        assert not re.search(
            r"Traceback|(?<!pass )\bNone\b|object at 0x|<class|sqlglot|lark|Token\(|File \"", case.expected
        ), where
        assert len(case.expected.splitlines()) <= 16, where
        if name not in UNPLACED and codes[0][0].startswith(PLACED) and "no place" not in case.comment:
            assert re.search(r"^ +\| +\^+$|^ +\| \^+$|\"span\": \[", case.expected, re.MULTILINE), where


def test_hints_are_there_where_one_is_possible() -> None:
    cases = [case for path in sorted(SCRIPTS.iterdir()) for case in read_cases(path)]
    hinted = sum("hint" in case.expected for case in cases)
    assert hinted / len(cases) > 0.75, f"{hinted} of {len(cases)}"


def test_figures() -> None:
    """All coded; what stems from a statement's text placed, under its culprit where it names one; none
    shows the inside, is too wide or long.
    """
    found = figures()
    assert found.inputs >= 780
    assert found.coded == found.inputs and found.placed == found.from_text
    assert found.named >= 200 and found.covered >= 0.97 * found.named and found.cut == 0
    assert (found.leaking, found.too_wide, found.too_long) == (0, 0, 0), found
    assert found.hinted / found.inputs > 0.8


@pytest.mark.parametrize("name", list(WITHIN))
def test_forty_nine_levels_are_no_error(name: str) -> None:
    assert run_script(WITHIN[name]).startswith("accepted: ")
