"""Bad inputs that are refused at once, one golden file a topic: a code, a sentence, a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.golden import check_golden
from tests.streaming.bad_inputs.scene import places_of, run_case

SCRIPTS = Path(__file__).parent / "scripts"


def check(topic: str, here: Path) -> None:
    with places_of(topic, here) as places:
        check_golden(SCRIPTS / topic, lambda text: run_case(places, text))


@pytest.mark.parametrize("topic", ["files", "delta", "iceberg", "http", "messages"])
def test_golden(topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(topic, tmp_path)


@pytest.mark.xdist_group("moto")
def test_golden_of_object_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check("storage", tmp_path)
