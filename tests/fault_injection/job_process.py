"""A job as a process of the command line that can be killed, stopped, gone on with, and started again over
what it left.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.forked_process import ForkedProcess, start_command_line
from tests.harness.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.002


@dataclass
class JobProcess:
    """``penstock run`` of one script, state and output below ``root``. ``module``: what ``python -m``
    runs, the command line or a mutant of it.
    """

    root: Path
    script: str
    job: str
    interval: str = "50 ms"
    settings: tuple[str, ...] = ()
    module: str = "penstock.repl.cli"
    failpoints: str = ""
    runs: int = 0
    started_s: float = 0.0
    process: ForkedProcess | subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def state_dir(self) -> Path:
        """What ``--state`` is given."""
        return self.root / "state"

    @property
    def state(self) -> Path:
        """Where the job keeps its checkpoints."""
        return self.state_dir / self.job

    def start(self, *words: str, parallelism: int = 1, env: dict[str, str] | None = None) -> None:
        """Start the process over whatever state there is; ``words`` instead of ``run SCRIPT`` start
        another command over it.
        """
        self.runs += 1
        path = self.root / "job.sql"
        path.write_text(self.script, encoding="utf-8")
        command: Sequence[str] = words or ("run", str(path))
        settings = [
            f"execution.checkpointing.interval={self.interval}",
            "restart-strategy.delay=20 ms",
            *self.settings,
        ]
        flags = [
            "--state",
            str(self.state_dir),
            "-p",
            str(parallelism),
            *(word for one in settings for word in ("--set", one)),
        ]
        marks = self.root / "marks"
        marks.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PENSTOCK_CONFIG": "/nonexistent",
            "NO_COLOR": "1",
            **(env or {}),
        }
        if self.failpoints:
            environment |= {
                "PENSTOCK_FAILPOINTS": self.failpoints,
                "PENSTOCK_TEST": "1",
                "PENSTOCK_FAILPOINT_MARKS": str(marks),
            }
        self.started_s = time.monotonic()
        with self._told.open("wb") as told:
            self.process = start_command_line(
                [*command, *flags], self.root, environment, told, run=self.runs, module=self.module
            )

    @property
    def _told(self) -> Path:
        return self.root / f"run-{self.runs}.txt"

    @property
    def told(self) -> str:
        """What the newest process has said."""
        return self._told.read_text(encoding="utf-8", errors="replace")

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def await_that(self, happened: Callable[[], object], patience_s: float = PATIENCE_S) -> float:
        """Wait until something is true while the process runs; return the seconds that took."""
        began = time.monotonic()
        while not happened():
            assert self.alive, (
                f"the process ended by itself with {self.process and self.process.returncode}:\n{self.told}"
            )
            assert time.monotonic() < began + patience_s, f"it does not get on:\n{self.told}"
            time.sleep(POLL_S)
        return time.monotonic() - began

    @property
    def running(self) -> bool:
        """Whether the process has said that its job runs."""
        return re.search(rf"^job {self.job}: running", self.told, re.MULTILINE) is not None

    @property
    def newest(self) -> int:
        """The number of the newest durable checkpoint, 0 when there is none."""
        return max(
            (int(path.name.split("-")[1].split(".")[0]) for path in self.state.glob("chk-*.manifest.json")),
            default=0,
        )

    @property
    def publishing(self) -> bool:
        """Whether a checkpoint is being published as we look."""
        return any(path.suffix == ".tmp" for path in self.state.glob("*"))

    @property
    def finished(self) -> bool:
        """Whether the job has been recorded as finished."""
        return (self.state / "FINISHED").exists()

    def await_checkpoint(self) -> float:
        """Wait until the process that runs now has completed a checkpoint."""
        began = self.newest
        return self.await_that(lambda: self.newest > began)

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> bool:
        """Kill the process as it stands; return whether it was still at work."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        return self.process.wait(PATIENCE_S) == -signal.SIGKILL

    def wait(self) -> int:
        """Wait for the process's own end and return its exit code."""
        assert self.process is not None
        return self.process.wait(PATIENCE_S)

    def reap(self) -> None:
        """Leave no process behind."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
