"""The main job as a process of its own, which can be killed in mid-run and started again over what it
left.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.forked_process import ForkedProcess, start_command_line
from tests.streaming.three_acts.main_job import script
from tests.streaming.three_acts.oracle import FLIGHTS, ROOT

START_S = 120.0  # a process on a loaded machine that has to compile its kernels first
END_S = 240.0
POLL_S = 0.002
JOB = "insert-into-delays-1"


@dataclass
class Victim:
    """The job's directories below ``root``, and one process at a time. ``module`` is what ``python -m`` runs:
    the command line, or a mutant of it.

    ``rows_per_second`` slows the replay down, so that a run takes as long as the kills need however fast the
    machine is.
    """

    root: Path
    rows_per_second: int
    interval: str = "50 ms"
    module: str = "penstock.repl.cli"
    flights: Path = FLIGHTS
    runs: int = 0
    process: ForkedProcess | subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def out(self) -> Path:
        """Where the Parquet is published."""
        return self.root / "out"

    @property
    def state(self) -> Path:
        """Where the job keeps its checkpoints."""
        return self.root / "state" / JOB

    def start(self, *, parallelism: int = 1, slowly: bool = True) -> None:
        """Start the process over whatever state there is."""
        self.runs += 1
        text = script(self.flights, self.out, self.rows_per_second if slowly else 0)
        path = self.root / "flights.sql"
        path.write_text(text, encoding="utf-8")
        words = ["run", str(path), "--state", str(self.root / "state"), "-p", str(parallelism), "--csv"]
        for setting in (
            "bounded.backend=duckdb",
            f"execution.checkpointing.interval={self.interval}",
            "execution.batch.max-rows=1000",
        ):
            words += ["--set", setting]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PENSTOCK_CONFIG": "/nonexistent",
            "NO_COLOR": "1",
        }
        with self._told.open("wb") as told:
            self.process = start_command_line(
                words, self.root, environment, told, run=self.runs, module=self.module
            )

    @property
    def _told(self) -> Path:
        return self.root / f"run-{self.runs}.txt"

    @property
    def told(self) -> str:
        """What the last process has said."""
        return self._told.read_text(encoding="utf-8", errors="replace")

    def await_that(self, happened) -> None:
        """Wait until something is true of the running process."""
        deadline = time.monotonic() + START_S
        while not happened():
            assert self.process is not None
            assert self.process.poll() is None, (
                f"the process ended by itself with {self.process.returncode}:\n{self.told}"
            )
            assert time.monotonic() < deadline, f"it does not get on:\n{self.told}"
            time.sleep(POLL_S)

    def await_running(self) -> None:
        """Wait until the job runs."""
        self.await_that(lambda: re.search(rf"^job {JOB}: running", self.told, re.MULTILINE))

    def await_checkpoint(self) -> None:
        """Wait until the process that runs now has completed a checkpoint."""
        began = self._newest
        self.await_that(lambda: self._newest > began)

    def await_published(self) -> None:
        """Wait until the process that runs now has published a file."""
        began = self.published().keys()
        self.await_that(lambda: self.published().keys() - began)

    @property
    def _newest(self) -> int:
        """The number of the newest durable checkpoint, 0 when there is none."""
        return max(
            (int(path.name.split("-")[1].split(".")[0]) for path in self.state.glob("chk-*.manifest.json")),
            default=0,
        )

    def kill(self) -> None:
        """Kill the process as it stands; it must still have been at work."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait(END_S) == -signal.SIGKILL, (
            f"it had ended before it could be killed:\n{self.told}"
        )
        assert not (self.state / "FINISHED").exists(), "the job had finished before it was killed"

    def stop(self) -> int:
        """Ask the process to stop (SIGTERM); return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(END_S)

    def end(self) -> None:
        """Wait for the process's own, good end."""
        assert self.process is not None
        assert self.process.wait(END_S) == 0, self.told

    def reap(self) -> None:
        """Leave no process behind, whatever has happened."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def checkpointed(self) -> bool:
        """Whether a checkpoint has been completed."""
        return (self.state / "CURRENT").exists()

    def published(self) -> dict[str, int]:
        """Return the published files and when each was written (ns)."""
        return {path.name: path.stat().st_mtime_ns for path in self.out.glob("*.parquet")}

    def staged(self) -> list[str]:
        """Return what stands in the table's directory besides published files and the log that names them."""
        return sorted(
            str(path.relative_to(self.out))
            for path in self.out.rglob("*")
            if path.is_file() and path.suffix not in (".parquet", ".commit")
        )
