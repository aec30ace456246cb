"""Bad inputs that end a job in mid-run: nothing committed is lost, and the cured job resumes exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.http_server import http_server
from tests.streaming.bad_inputs.lakehouse_resuming import DELTA_CASES, ICEBERG_CASES
from tests.streaming.bad_inputs.resuming import FILE_CASES, SINK_CASES, Resumed, Stage, run

CASES = (*FILE_CASES, *SINK_CASES, *DELTA_CASES, *ICEBERG_CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
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
