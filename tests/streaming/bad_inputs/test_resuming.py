"""Bad inputs that end a job in mid-run: nothing committed is lost, and the cured job resumes exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.http_server import http_server
from tests.streaming.bad_inputs.page import RESUMED
from tests.streaming.bad_inputs.resuming import FILE_CASES, Resumed, Stage, run


@pytest.mark.parametrize("case", RESUMED, ids=lambda case: case.title)
def test_the_cured_job_resumes(case: Resumed, tmp_path: Path) -> None:
    if "connector' = 'delta" in case.script:
        pytest.importorskip("deltalake", reason="the extra delta is not installed")
    if "connector' = 'iceberg" in case.script:
        pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
    with http_server() as server:
        stage = Stage(tmp_path, server)
        server.answer = stage.answer
        said = run(case, stage)
    assert said.startswith(f"error[{case.code}]: "), said
    assert "\nhint: " in said, said


def test_a_cause_that_is_not_cured_is_seen(tmp_path: Path) -> None:
    """The negative control: the file with the bad record stays."""
    uncured = replace(FILE_CASES[0], cure=lambda stage: None)
    with pytest.raises(AssertionError, match="DAT-4201"):
        run(uncured, Stage(tmp_path))


def test_rows_that_are_lost_are_seen(tmp_path: Path) -> None:
    """The negative control: what was committed goes when the job ends."""

    def spoil(stage: Stage) -> None:
        FILE_CASES[0].spoil(stage)
        for path in (stage.here / "out").glob("part-*"):
            path.unlink()

    with pytest.raises(AssertionError, match="A bad record in a new file"):
        run(replace(FILE_CASES[0], spoil=spoil), Stage(tmp_path))
