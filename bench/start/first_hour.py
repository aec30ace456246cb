"""``python -m bench.start.first_hour``: the first hour on a new machine, timed: a new virtual environment, an empty
home and empty caches. pip may use its own cache (``--no-cache``: it may not). Each step has its time since its
command was started and, because the machine may be busy, the command's seconds of CPU until then.

It installs the checkout without Spark, reads a Parquet file by one command, and starts the windowed job of
docs/TUTORIAL.md over its csv file. The commands run twice, since the first run compiles kernels.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from tests.harness.page_files import write_page_files

ROOT = Path(__file__).resolve().parents[2]
_LIMIT_S = 900.0
_LOOK_S = 0.01


class Machine:
    """A new machine in a folder: nothing of the user's environment but the path and pip's cache."""

    def __init__(self, folder: Path, *, pip_cache: bool) -> None:
        self.bin = folder / "venv" / "bin"
        self.work = folder / "work"
        home = folder / "home"
        for made in (self.work, home):
            made.mkdir()
        kept = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "LANG", "LC_"))}
        cache = subprocess.run(
            [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True
        ).stdout.strip()
        configuration = Path.home() / ".config" / "pip" / "pip.conf"
        # the way to the package index is the machine's, not the user's environment
        if configuration.exists():
            kept.setdefault("PIP_CONFIG_FILE", str(configuration))
        self.environment = {
            **kept,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(home),
            **({"PIP_CACHE_DIR": cache} if pip_cache else {"PIP_NO_CACHE_DIR": "1"}),
        }

    def run(self, *command: str) -> None:
        """Run a command to its end and report its times."""
        begun = time.monotonic()
        process = subprocess.Popen(command, cwd=self.work, env=self.environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(command)} failed")
        _report(" ".join(command), begun, used.ru_utime + used.ru_stime)

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command whose lines are read while it runs."""
        return subprocess.Popen(
            command,
            cwd=self.work,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def main() -> None:
    """Print the time of each step."""
    parser = argparse.ArgumentParser(prog="python -m bench.start.first_hour", description=__doc__)
    parser.add_argument("--no-cache", action="store_true", help="pip downloads everything")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-first-hour-") as folder:
        machine = Machine(Path(folder), pip_cache=not arguments.no_cache)
        machine.run("python3", "-m", "venv", str(machine.bin.parent))
        # a copy: pip builds in the folder it is given
        source = Path(folder) / "source"
        ignored = shutil.ignore_patterns(".venv", ".git", "out", "build", "*.egg-info", ".*_cache")
        shutil.copytree(ROOT, source, ignore=ignored)
        machine.run("pip", "install", "--quiet", "--quiet", str(source))
        write_page_files(ROOT / "docs" / "TUTORIAL.md", machine.work)
        pq.write_table(arrow_csv.read_csv(machine.work / "orders.csv"), machine.work / "orders.parquet")
        (machine.work / "inbox").mkdir()
        shutil.copy(machine.work / "orders.csv", machine.work / "inbox")
        for run in ("first run", "second run"):
            print(f"\n{run}")
            first_row(machine)
            windowed_job(machine)
            for written in ("sales", "state"):
                shutil.rmtree(machine.work / written)


def first_row(machine: Machine) -> None:
    """Time one command up to the first row of a Parquet file."""
    begun = time.monotonic()
    with machine.start("penstock", "-c", "SELECT * FROM 'orders.parquet'", "--csv") as shell:
        _await_line(shell, lambda line: line.startswith("1,"))
        _report("first row of SELECT * FROM 'orders.parquet'", begun, _cpu_s(shell))


def windowed_job(machine: Machine) -> None:
    """Time the three statements of the tutorial's job, each from the start of the command."""
    begun = time.monotonic()
    with machine.start("penstock", "run", "job.sql", "--state", "state") as job:
        for statement, note in (
            ("CREATE TABLE orders: columns inferred from the csv file", "table orders created"),
            ("CREATE TABLE sales", "table sales created"),
            ("INSERT: the windowed job runs", ": running"),
        ):
            _await_line(job, lambda line, note=note: note in line)
            _report(statement, begun, _cpu_s(job))
        sales = machine.work / "sales"
        while not (sales.is_dir() and any(not path.name.startswith(".") for path in sales.iterdir())):
            _in_time(begun)
            time.sleep(_LOOK_S)
        _report("first windows committed to files", begun, _cpu_s(job))
        job.send_signal(signal.SIGINT)
        job.communicate()


def _await_line(process: subprocess.Popen[str], wanted: Callable[[str], bool]) -> None:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        if wanted(line):
            return
        seen.append(line)
    raise SystemExit(f"the command ended early:\n{''.join(seen)}")


def _in_time(begun: float) -> None:
    if time.monotonic() - begun > _LIMIT_S:
        raise SystemExit(f"no file within {_LIMIT_S:.0f} s")


def _cpu_s(process: subprocess.Popen[str]) -> float:
    """The seconds of CPU of a process that runs; 0 where the system does not say."""
    status = Path(f"/proc/{process.pid}/stat")
    if not status.exists():
        return 0.0
    # behind the command's name, which may hold blanks
    figures = status.read_text(encoding="utf-8").rsplit(")", maxsplit=1)[1].split()
    return (int(figures[11]) + int(figures[12])) / os.sysconf("SC_CLK_TCK")


def _report(step: str, begun: float, cpu_s: float) -> None:
    print(f"{time.monotonic() - begun:8.1f} s {cpu_s:6.1f} s of CPU  {step}", flush=True)


if __name__ == "__main__":
    main()
