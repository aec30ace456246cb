"""Bad inputs that are refused at once, one golden file a topic: each with a code, a sentence and a hint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.harness.golden import check_golden, read_cases
from tests.streaming.bad_inputs.page import RESUMED, SCRIPTS, TOPICS, page
from tests.streaming.bad_inputs.scene import places_of, run_case

ROOT = Path(__file__).parents[3]
_SENTENCE = re.compile(r"error\[([A-Z]{3}-\d{4})\]: \S.*\n(operator: .*\n)?hint: \S.*")


def check(topic: str, here: Path) -> None:
    with places_of(topic, here) as places:
        check_golden(SCRIPTS / topic, lambda text: run_case(places, text))


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic not in ("kafka", "storage")])
def test_golden(topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(topic, tmp_path)


@pytest.mark.xdist_group("moto")
def test_golden_of_object_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check("storage", tmp_path)


@pytest.mark.xdist_group("kafka")
def test_golden_of_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check("kafka", tmp_path)


def test_each_of_a_hundred_has_a_code_a_sentence_and_a_hint() -> None:
    cases = [(topic, case) for topic in TOPICS for case in read_cases(SCRIPTS / topic)]
    assert len(cases) + len(RESUMED) >= 140
    for topic, case in cases:
        where = f"{topic}:{case.line}"
        assert case.comment.startswith("# "), where
        said = _SENTENCE.fullmatch(case.expected)
        assert said is not None, f"{where}: {case.expected}"
        # a bare exception of a library, or an error without a code of its own
        assert said[1] not in ("RUN-2900", "RUN-2999", "DAT-5510"), where
    titles = [f"{topic}: {case.comment}" for topic, case in cases]
    assert len(set(titles)) == len(titles)


def test_the_page_of_bad_inputs_is_what_the_cases_say() -> None:
    assert (ROOT / "docs" / "BAD_INPUTS.md").read_text(encoding="utf-8") == page(), (
        "python -m tests.streaming.bad_inputs.page docs"
    )
