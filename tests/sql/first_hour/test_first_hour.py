"""Mistakes of a first hour: each is answered by an error whose hint leads to success in one step. A case is
what was typed and the statement that the hint leads to, and both are run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.golden import check_golden, read_cases
from tests.sql.first_hour.page import SCRIPTS, TOPICS, page
from tests.sql.first_hour.sample import MENDED, make_files, run_case, run_command_lines, without_times

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("topic", TOPICS)
def test_golden(topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    check_golden(SCRIPTS / topic, run_command_lines if topic == "shell" else run_case)


@pytest.mark.parametrize(
    "told",
    [
        "compiling kernels for this machine: once",
        "compiled 1 kernel in 0.5 s",
        "compiled 12 kernels in 3.5 s",
    ],
)
def test_a_kernel_that_is_compiled_changes_no_answer(told: str) -> None:
    assert without_times(f"{told}\nn\n{told}\npenstock> {told}\n1 row in 0.2 s\n{told}") == "n\n1 row in # s"


def test_each_mistake_has_a_code_and_a_hint_and_what_it_leads_to_succeeds() -> None:
    cases = [(topic, case) for topic in TOPICS for case in read_cases(SCRIPTS / topic)]
    assert len(cases) >= 100
    for topic, case in cases:
        where = f"{topic}:{case.line}"
        assert case.comment.startswith("# "), where
        typed, mended = case.expected.split(MENDED)
        assert "error[" in typed, where
        assert "\nhint: " in typed, where
        assert "error[" not in mended, where
        assert mended.startswith(("accepted", "exit 0")), where
    titles = [case.comment for _, case in cases]
    assert len(set(titles)) == len(titles)


def test_the_page_of_mistakes_is_what_the_cases_say() -> None:
    assert (ROOT / "docs" / "MISTAKES.md").read_text(encoding="utf-8") == page(), (
        "python -m tests.sql.first_hour.page docs"
    )
