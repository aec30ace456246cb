"""Jobs go on at another parallelism from checkpoints of all kinds; a restore that forgets state is found."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from penstock.engine.checkpoint.restore import Restorer
from tests.fault_injection.rescaled import covered, every_pair, run
from tests.fault_injection.verdict import Verdict
from tests.harness.length import of_length


def verdict_of(directory: Path, cases: int | None) -> Verdict:
    verdict = Verdict("rescale", 1)
    run(argparse.Namespace(seed=1, directory=directory, cases=cases, full=False), verdict)
    return verdict


CASES = of_length(3, 20)
"""Of the 51 cases in which every pair of choices meets; the card ``rescale`` runs them all and every combination."""


@pytest.mark.longer
def test_the_answer_is_that_of_one_slot(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, CASES)
    assert not verdict.wrong
    assert verdict.coverage["rescaled in mid-run"] == verdict.figures["cases"] == CASES


def test_every_pair_of_choices_meets() -> None:
    cases = every_pair(1)
    assert covered(cases) == 329
    assert covered(cases[:20]) == 219


@pytest.mark.at_length
def test_control_forgotten_state_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Restorer, "_restore_keyed", lambda restorer, chained: None)
    assert verdict_of(tmp_path, 3).wrong
