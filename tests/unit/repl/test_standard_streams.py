"""The command line with a stdout that is full, has no reader or is not open, and without stdin or stderr."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.harness.patience import PATIENCE_S
from tests.unit.repl.test_cli import COMMAND, ENDLESS, QUIET

PRINTING = (
    ENDLESS + "CREATE TEMPORARY TABLE p (a INT) WITH ('connector' = 'print'); INSERT INTO p SELECT a FROM e;"
)
ROWS = "SELECT * FROM generate_series(1, 200000) AS t(x);"


def in_shell(words: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``penstock run`` on a script in a shell that redirects its streams by ``words``."""
    script = folder / "script.sql"
    script.write_text(text)
    command = f"{' '.join(COMMAND)} run {script} {words}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE_S, env=QUIET, check=False
    )


@pytest.mark.parametrize("deployment", ["embedded", "processes"])
def test_a_job_ends_with_the_program_that_reads_what_it_prints(tmp_path: Path, deployment: str) -> None:
    done = in_shell(f"--set deployment={deployment} | head -1", PRINTING, tmp_path)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr
    assert "Traceback" not in done.stderr and "restarting" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize(("text", "code"), [(PRINTING, 5), (ROWS, 1)])
def test_a_full_disk_behind_stdout_is_an_error_in_a_sentence(tmp_path: Path, text: str, code: int) -> None:
    done = in_shell("> /dev/full", text, tmp_path)
    assert done.returncode == code, done.stderr
    assert "error[DAT-4632]: stdout cannot be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr and "restarting" not in done.stderr


@pytest.mark.parametrize(("closed", "shown"), [(">&-", ""), ("2>&-", "x\n1\n"), ("<&-", "x\n1\n")])
def test_a_stream_that_is_not_open_is_empty(tmp_path: Path, closed: str, shown: str) -> None:
    done = in_shell(f"--csv {closed}", "SELECT 1 AS x;", tmp_path)
    assert (done.returncode, done.stdout) == (0, shown), done.stderr
    assert "Traceback" not in done.stderr
