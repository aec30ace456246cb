"""Numbers written exactly once into files, a database or a log: the job, what stands in its table, and who
reads it all the while.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from pathlib import Path

import numpy as np

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.log import Log, out_of_order
from tests.fault_injection.swept_job import unpublished
from tests.streaming.databases.places import KINDS, Place

INTO = ("filesystem", "log", *KINDS)
JOB = "insert-into-o-1"
READ_S = 0.2
SPLITS = 5
SCRIPT = """
CREATE TABLE numbers (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '{rows}', 'rows-per-second' = '{rate}', 'splits' = '{splits}',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0');
CREATE TABLE o (k INT, v STRING) {options};
INSERT INTO o SELECT k, CAST(k AS STRING) FROM numbers;
"""


class Target:
    """The table ``o`` of one kind of sink, seen from outside."""

    def __init__(self, kind: str, root: Path) -> None:
        self.kind = kind
        self.out = root / ("out.log" if kind == "log" else "out")
        self._log = Log(self.out) if kind == "log" else None
        self._place = Place(kind, root) if kind in KINDS else None
        if self._place is not None:
            self._place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")

    @property
    def read_beside(self) -> bool:
        """Whether others may read while the job runs: a DuckDB file is open in one process at a time."""
        return self.kind != "duckdb"

    @property
    def module(self) -> str:
        """The command line that knows its sink."""
        return "penstock.repl.cli" if self._log is None else "tests.fault_injection.log_sink"

    def script(self, rows: int, rate: int) -> str:
        """Return the job's statements."""
        files = f"WITH ('connector' = 'filesystem', 'path' = '{self.out}', 'format' = 'json', 'sink.rolling.rows' = '40')"
        options = files if self._place is None else self._place.options("out")
        return SCRIPT.format(rows=rows, rate=rate, splits=SPLITS, options=options)

    def numbers(self) -> np.ndarray:
        """Return the numbers that are committed now."""
        if self._log is not None:
            return self._log.committed()
        if self._place is not None:
            return np.array([row[0] for row in self._place.ask("SELECT k FROM out")], np.int64)
        lines = [
            line
            for path in self.out.glob("part-*.jsonl")
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        return np.array([json.loads(line)["k"] for line in lines], np.int64)

    def staged(self) -> int:
        """Return how many transactions or files wait to be committed."""
        if self._log is not None:
            return self._log.open_transactions
        return len(unpublished(self.out)) if self._place is None else self._place.staged()


class Reader:
    """Reads what is committed, again and again: a number that was seen stays, none comes twice."""

    def __init__(self, target: Target, rows: int) -> None:
        self._target = target
        self._seen = np.zeros(rows, np.bool_)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.reads = 0
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def start(self) -> None:
        """Begin to read beside the job, if that may be."""
        if self._target.read_beside:
            self._thread.start()

    def stop(self) -> None:
        """End reading beside the job."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(READ_S):
            try:
                self.read()
            except sqlite3.OperationalError:
                self.counts["reads that found the file locked"] += 1
            except Exception as error:  # noqa: BLE001 - what ends the reader is the card's verdict
                self.wrong.append(f"the reader failed: {type(error).__name__}: {error}")
                return

    def read(self) -> None:
        """Look once."""
        numbers = self._target.numbers()
        times = np.bincount(numbers, minlength=self._seen.size)
        self.reads += 1
        if self._target.kind == "log" and (misplaced := out_of_order(numbers)):
            self.wrong.append(f"read {self.reads}: {misplaced} numbers come behind a higher one of their key")
        now = times > 0
        gone, doubled = int((self._seen & ~now).sum()), int((times > 1).sum())
        self.counts["reads that found more than the one before"] += bool((now & ~self._seen).any())
        if gone or doubled:
            self.wrong.append(
                f"read {self.reads}: {gone} numbers that were seen are gone, {doubled} are there twice"
            )
        self._seen = now

    @property
    def missing(self) -> int:
        """How many numbers the newest read has not found."""
        return int((~self._seen).sum())


def raised(job: JobProcess, kills: Counter[str]) -> Counter[str]:
    """Return how often each step has failed, by the marks that the processes of a job have left."""
    marks = Counter(path.name.partition("-")[0] for path in (job.root / "marks").iterdir())
    return marks - kills
