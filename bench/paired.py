"""This checkout beside another one: ``python -m bench.paired --against CHECKOUT``, runs interleaved.

Both checkouts need a virtual environment at ``.venv`` with an editable install. One process a side stays up
and runs each query in turn: first run and warm runs, processor time of all threads. Start-up is timed with a
new process each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
# what start-up times: the import alone, a statement on the command line, and one with a bounded backend
_STARTUP = {
    "import penstock": ["python", "-c", "import penstock"],
    "penstock -c 'SELECT 1'": ["penstock", "-c", "SELECT 1"],
    "penstock --version": ["penstock", "--version"],
}
# ratios above it are marked: the least of five runs differs by 2 to 4 % on a shared machine
_TOO_NOISY = 1.05


class Side:
    """One checkout's process. ``run`` sends a request and waits for its reply: seconds and peak memory."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.bin = checkout / ".venv" / "bin"
        # the other checkout imports its own bench and product, never this one's
        environment = os.environ | {"PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            [self.bin / "python", HERE / "bench" / "paired.py", "--serve"],
            cwd=checkout,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, request: dict[str, object]) -> dict[str, float]:
        """Run one query there. Raises RuntimeError when the process ended."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        reply = process.stdout.readline()
        if not reply:
            raise RuntimeError(f"the process of {self.checkout} ended with {process.wait()}")
        answer: dict[str, float] = json.loads(reply)
        return answer

    def start(self, words: list[str]) -> float:
        """Return the processor time of a new process with these words, in seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([self.bin / words[0], *words[1:]], cwd="/", check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve() -> None:
    """Answer requests from standard input until it closes: the child's side of ``Side.run``."""
    from bench import nexmark, throughput

    questions = {question.name: question for question in throughput.QUESTIONS}
    for line in sys.stdin:
        request = json.loads(line)
        start, cpu = time.perf_counter(), time.process_time()
        if request["bench"] == "throughput":
            throughput.ours_s(Path(request["files"]), questions[request["name"]], 1)
        else:
            nexmark.ours(request["name"], Path(request["files"]), request["form"], 1)
        reply = {
            "cpu_s": time.process_time() - cpu,
            "wall_s": time.perf_counter() - start,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def compare(
    names: list[str], runs: int, measure: tuple[Callable[[str], float], Callable[[str], float]]
) -> Iterator[str]:
    """Yield one line a name: this and the other side's first run and least of the warm ones, and their ratio.

    The least, because other work on the machine only adds to processor time (caches, the clock of the
    processor).

    The sides alternate, and the side that runs first alternates too: a slow moment of the machine meets both.
    """
    for name in names:
        seconds: tuple[list[float], list[float]] = ([], [])
        for turn in range(runs + 1):
            for side in (0, 1) if turn % 2 else (1, 0):
                seconds[side].append(measure[side](name))
        ours, theirs = (min(times[1:]) for times in seconds)
        mark = "  <-- slower" if ours / theirs > _TOO_NOISY else ""
        yield (
            f"{name:38} {seconds[0][0]:9.3f} {seconds[1][0]:9.3f}   {ours:9.3f} {theirs:9.3f} {ours / theirs:7.2f}{mark}"
        )


def report(
    against: Path, folder: Path, which: list[str], queries: list[str], events: int, runs: int, form: str
) -> None:
    """Print seconds of processor time of both checkouts, query by query. ``form``: of Nexmark's files."""
    from bench import data, nexmark, nexmark_events, throughput

    sides = (Side(HERE), Side(against.resolve()))
    files = {
        "throughput": data.events(folder.resolve()) if "throughput" in which else folder,
        "nexmark": nexmark_events.written(folder.resolve(), events) if "nexmark" in which else folder,
    }
    names = {
        "startup": list(_STARTUP),
        "throughput": [question.name for question in throughput.QUESTIONS],
        "nexmark": queries or nexmark.queries(),
    }
    print(
        f"{'seconds of processor time':38} {'first':>9} {'other':>9}   {'warm':>9} {'other':>9} {'ratio':>7}"
    )
    for bench in which:

        def measure(side: Side, bench: str = bench) -> Callable[[str], float]:
            if bench == "startup":
                return lambda name: side.start(_STARTUP[name])
            request = {"bench": bench, "files": str(files[bench]), "form": form}
            return lambda name: side.run(request | {"name": name})["cpu_s"]

        for line in compare(names[bench], runs, (measure(sides[0]), measure(sides[1]))):
            print(line, flush=True)
    if which != ["startup"]:
        request = {"bench": "nexmark", "name": "q0", "files": str(files["nexmark"]), "form": form}
        if "nexmark" in which:
            peaks = [side.run(request)["peak_mb"] for side in sides]
            print(f"peak memory after all of it: {peaks[0]:,.0f} MB, the other {peaks[1]:,.0f} MB")
    for side in sides:
        side.close()


def main() -> None:
    """Run the benches that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.paired", description=__doc__)
    parser.add_argument("which", nargs="*", help="startup, throughput, nexmark (all)")
    parser.add_argument("--against", type=Path, required=True, help="the other checkout, with its .venv")
    parser.add_argument("--runs", type=int, default=3, help="warm runs a side (3)")
    parser.add_argument("--queries", default="", help="which Nexmark queries, such as q0,q3 (all)")
    parser.add_argument("--events", type=int, default=2_000_000, help="events of Nexmark (2 million)")
    parser.add_argument("--folder", type=Path, default=Path("out/bench"), help="where the events are kept")
    parser.add_argument(
        "--form", choices=("parquet", "csv"), default="parquet", help="Nexmark's files (parquet)"
    )
    arguments = parser.parse_args()
    which = arguments.which or ["startup", "throughput", "nexmark"]
    queries = [name for name in arguments.queries.split(",") if name]
    report(
        arguments.against,
        arguments.folder,
        which,
        queries,
        arguments.events,
        arguments.runs,
        arguments.form,
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        main()
