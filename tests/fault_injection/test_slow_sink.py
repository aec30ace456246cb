"""Checkpoints behind a slow sink, in small: the long run is ``python -m tests.fault_injection unaligned``."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from penstock.engine.exchange.input_gate import InputGate
from tests.fault_injection import slow_sink
from tests.fault_injection.verdict import Verdict


@pytest.fixture(autouse=True)
def look_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_sink, "LOOK_S", 0.15)


def judged(directory: Path) -> Verdict:
    verdict = Verdict("unaligned", 1)
    arguments = argparse.Namespace(
        capacity=16, sleep=0.05, checkpoints=2, most=60.0, control=1.8, directory=directory
    )
    slow_sink.run(arguments, verdict)
    return verdict


def test_unaligned_checkpoints_behind_a_slow_sink_restore_exactly_at_another_parallelism(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_sink, "TRIALS", slow_sink.TRIALS[1:])
    verdict = judged(tmp_path)
    assert not verdict.wrong
    assert verdict.figures["aligned checkpoints in the control"] == 0


def test_negative_control_rows_in_flight_that_are_not_put_back_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_sink, "TRIALS", slow_sink.TRIALS[:1])
    monkeypatch.setattr(InputGate, "put_back", lambda self, port, source, batches: None)
    monkeypatch.setattr(slow_sink, "CATCH_UP_S", 0.8)
    monkeypatch.setattr(slow_sink, "_control", lambda arguments: 0)
    assert any("missing" in sentence for sentence in judged(tmp_path).wrong)
