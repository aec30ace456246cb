"""``python -m bench.state.spill``: a join or an aggregate of many keys under a memory budget: its rate beside
that without one, and how memory grows.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

_LOOK_S = 0.25
_MB = 1 << 20

_SCRIPT = """
SET 'bounded.backend' = 'duckdb';
SET 'state.memory.budget-per-slot' = '{budget_mb} mb';
SET 'state.spill.dir' = '{folder}';
SET 'table.dml-sync' = 'true';
SET 'restart-strategy.type' = 'none';
CREATE TABLE a (k BIGINT, text STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '{rows}', 'rows-per-second' = '0',
  {keys_a}, 'fields.text.length' = '{width}');
CREATE TABLE b (k BIGINT, text STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '{rows}', 'rows-per-second' = '0',
  {keys_b}, 'fields.text.length' = '{width}');
CREATE TABLE hole (k BIGINT, n INT) WITH ('connector' = 'blackhole');
INSERT INTO hole {query};
"""
QUERIES = {
    "join": "SELECT a.k, length(a.text) + length(b.text) FROM a JOIN b ON a.k = b.k + {rows} / 2",
    "groups": "SELECT k, CAST(COUNT(*) + SUM(n) AS INT) FROM (SELECT k, length(text) AS n FROM a UNION ALL SELECT -k, length(text) FROM b) "
    "GROUP BY k",
}
KEYS = {
    "sequence": "'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '{rows}'",
    "random": "'fields.k.min' = '1', 'fields.k.max' = '{rows}', 'seed' = '{seed}'",
}
"""Each key once and in order, or keys in no order: two thirds of them come, and old ones again and again."""


@dataclass
class Measured:
    """How a process went: its exit code, what it printed, seconds by the clock and of processors, and at each
    look its own memory and that of mapped files, bytes.
    """

    code: int = 0
    printed: str = ""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    memory: list[int] = field(default_factory=list)
    mapped: list[int] = field(default_factory=list)

    @property
    def by_name(self) -> bool:
        """Whether it ended because its state was over the budget, and said so."""
        return "STA-3050" in self.printed

    def grown(self) -> int:
        """Return how many bytes the peak is above the first look that found it at work."""
        return max(self.memory, default=0) - min(self.memory[4:8], default=0)


def measured(rows: int, width: int, budget_mb: int, query: str = "join", keys: str = "sequence") -> Measured:
    """Run one of QUERIES over KEYS in a process of its own and look at its memory."""
    found = Measured()
    key_options = (KEYS[keys].format(rows=rows, seed=seed) for seed in (1, 2))
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        script = Path(folder) / "join.sql"
        asked = QUERIES[query].format(rows=rows)
        script.write_text(
            _SCRIPT.format(
                rows=rows,
                width=width,
                budget_mb=budget_mb,
                folder=folder,
                query=asked,
                keys_a=next(key_options),
                keys_b=next(key_options),
            ),
            encoding="utf-8",
        )
        started, before_s = time.monotonic(), _processor_seconds()
        with (Path(folder) / "printed").open("w+", encoding="utf-8") as printed:
            process = subprocess.Popen(
                [sys.executable, "-m", "penstock", "-f", str(script)],
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
            while process.poll() is None:
                found.memory.append(_memory(process.pid, "RssAnon"))
                found.mapped.append(_memory(process.pid, "RssFile"))
                time.sleep(_LOOK_S)
            printed.seek(0)
            found.printed = printed.read()
        found.code, found.seconds = process.returncode, time.monotonic() - started
        found.processor_seconds = _processor_seconds() - before_s
    return found


def _processor_seconds() -> float:
    """Return the seconds of processors that child processes took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(process_id: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name + ":")), 0)


def main() -> None:
    """Print one line per budget."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.spill", description=__doc__)
    parser.add_argument(
        "--rows",
        type=int,
        default=int(os.environ.get("SPILL_ROWS", "400000")),
        help="rows, and distinct keys, of each side (400,000)",
    )
    parser.add_argument("--width", type=int, default=400, help="bytes of text in each row (400)")
    parser.add_argument(
        "--query", choices=sorted(QUERIES), default="join", help="what is asked of the rows (join)"
    )
    parser.add_argument("--keys", choices=sorted(KEYS), default="sequence", help="the keys (sequence)")
    parser.add_argument(
        "--budgets", default="0,256,128", help="MB of memory for state, one run each; 0: no limit"
    )
    arguments = parser.parse_args()
    print(
        f"{arguments.rows:,} rows a side, {2 * arguments.rows * arguments.width / _MB:,.0f} MB of text in all"
    )
    # twice: the first may compile kernels
    start_s = min(
        measured(1, arguments.width, 0, arguments.query, arguments.keys).processor_seconds for _ in range(2)
    )
    print(f"processor seconds and times are without the {start_s:.1f} s that the start of a process takes")
    print(
        f"{'budget MB':>10} {'rows/s':>12} {'processor s':>12} {'times':>6} {'peak MB':>8} {'grown MB':>9} {'mapped MB':>10}"
    )
    first_s = 0.0
    for budget in map(int, arguments.budgets.split(",")):
        run = measured(arguments.rows, arguments.width, budget, arguments.query, arguments.keys)
        rate = (
            "over budget"
            if run.by_name
            else f"{2 * arguments.rows / run.seconds:,.0f}"
            if run.code == 0
            else f"exit {run.code}"
        )
        work_s = run.processor_seconds - start_s
        first_s = first_s or work_s
        print(
            f"{budget or 'none':>10} {rate:>12} {work_s:12.1f} {work_s / first_s:6.2f} "
            f"{max(run.memory, default=0) / _MB:8,.0f} {run.grown() / _MB:9,.0f} {max(run.mapped, default=0) / _MB:10,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
