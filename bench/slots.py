"""``python -m bench.slots``: what a second slot gives, as threads and as worker processes, beside DuckDB's
second thread: Nexmark's queries that exchange rows, and a running count.

Beside them is what the machine itself gives: two processes that share nothing run the same job with one slot
each, at once. What they lose to the caches and the memory that they share, no second slot can win.

Each place has a process of its own, which stays up, and they run the jobs in turn: a process that has worker
processes and DuckDB beside its slots runs two slots a tenth slower. With ``--against CHECKOUT`` another checkout
runs the same jobs in the same turns.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
# those that read bids at --events; q3 and q8 read few rows, so they are judged at five times as many events
QUERIES = ("q0", "q3", "q5", "q8", "q11", "q17", "q18", "count")
FEW_ROWS = ("q3", "q8")
FEW_ROWS_FACTOR = 5
_COUNT = "SELECT auction, COUNT(*) AS bids FROM bid GROUP BY auction"
# the place whose job runs twice at once, in two processes that share nothing
TWO_JOBS = "2 jobs"
# what runs a job: its slots and where they are
PLACES = {
    "1 slot": ("1", "embedded"),
    "2 slots": ("2", "embedded"),
    "2 processes": ("2", "processes"),
    TWO_JOBS: ("1", "embedded"),
    "DuckDB 1": ("1", "duckdb"),
    "DuckDB 2": ("2", "duckdb"),
}
_AIMS = {"2 slots": 1.75, "2 processes": 1.7}


def serve() -> None:
    """Answer requests from standard input until it closes."""
    connections: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        answer = _duckdb(request) if request["deployment"] == "duckdb" else _ours(request, connections)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _ours(request: Mapping[str, str], connections: dict[str, Any]) -> dict[str, float]:
    import penstock
    from bench import nexmark, nexmark_events

    key = f"{request['slots']} {request['deployment']} {request['files']}"
    if key not in connections:
        connections[key] = penstock.connect()
        for setting, value in (
            ("execution.runtime-mode", "streaming"),
            ("bounded.backend", "duckdb"),
            ("parallelism.default", request["slots"]),
            ("deployment", request["deployment"]),
        ):
            connections[key].execute(f"SET '{setting}' = '{value}'")
        for kind in nexmark_events.KINDS:
            connections[key].execute(nexmark_events.files_ddl(kind, Path(request["files"]), "parquet"))
    connection = connections[key]
    before, select = ([], _COUNT) if request["query"] == "count" else nexmark.statements(request["query"])
    for statement in before:
        connection.execute(statement)
    workers = _children()
    cpu_s, switches, wall_s = _cpu_s(workers), _switches(), time.perf_counter()
    job = connection.execute(
        f"CREATE TEMPORARY TABLE nexmark_sink WITH ('connector' = 'blackhole') AS {select}"
    ).job
    job.wait()
    taken = {"wall_s": time.perf_counter() - wall_s, "switches": _switches() - switches}
    # workers that the first job started are counted from their start on
    taken["cpu_s"] = _cpu_s(_children()) - cpu_s
    if job.error is not None:
        raise job.error
    connection.execute("DROP TABLE nexmark_sink")
    return taken


def _duckdb(request: Mapping[str, str]) -> dict[str, float]:
    import duckdb

    from bench import nexmark, nexmark_events

    connection = duckdb.connect()
    connection.execute(f"SET threads = {request['slots']}")
    # a folder of more events has no bids
    for kind in (k for k in nexmark_events.KINDS if (Path(request["files"]) / "parquet" / k).exists()):
        connection.execute(f"CREATE VIEW {kind} AS FROM '{request['files']}/parquet/{kind}/*.parquet'")
    text = _COUNT if request["query"] == "count" else nexmark.duckdb_text(request["query"])
    cpu_s, switches, wall_s = _cpu_s(()), _switches(), time.perf_counter()
    for _ in connection.sql(text).to_arrow_reader(100_000):
        pass
    return {
        "wall_s": time.perf_counter() - wall_s,
        "cpu_s": _cpu_s(()) - cpu_s,
        "switches": _switches() - switches,
    }


def _children() -> list[int]:
    """Return the processes that this one has started."""
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(number) for path in listed for number in path.read_text().split()]


def _cpu_s(workers: Iterable[int]) -> float:
    """Return the processor time of this process and of its workers, in seconds."""
    total = time.process_time()
    for worker in workers:
        # fields 14 and 15 of the file, counted behind the name, which may hold spaces
        fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _switches() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


class Side:
    """One checkout's process for one place: ``run`` sends a request and waits for its answer."""

    def __init__(self, checkout: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, HERE / "bench" / "slots.py", "--serve"],
            cwd=checkout,
            # the other checkout imports its own bench and product, never this one's
            env=os.environ | {"PYTHONPATH": str(checkout)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, files: Path, query: str, place: str) -> dict[str, float]:
        """Run one job there. Raises RuntimeError when the process ended."""
        self.start(files, query, place)
        return self.wait()

    def start(self, files: Path, query: str, place: str) -> None:
        """Begin one job there and return at once; ``wait`` has its figures."""
        slots, deployment = PLACES[place]
        request = {"files": str(files), "query": query, "slots": slots, "deployment": deployment}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def wait(self) -> dict[str, float]:
        """Return the figures of the job that was started. Raises RuntimeError when the process ended."""
        assert self._process.stdout is not None
        reply = self._process.stdout.readline()
        if not reply:
            raise RuntimeError(f"the process of a side ended with {self._process.wait()}")
        answer: dict[str, float] = json.loads(reply)
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def run_twice_at_once(side: Side, twin: Side, files: Path, query: str) -> dict[str, float]:
    """Run a job in both processes at once and return the figures of one: half of the longer time by the clock,
    and the mean of the rest, so that they compare with those of two slots that share one job's work.
    """
    for each in (side, twin):
        each.start(files, query, TWO_JOBS)
    both = side.wait(), twin.wait()
    figures = {figure: sum(each[figure] for each in both) / 2 for figure in both[0]}
    return figures | {"wall_s": max(each["wall_s"] for each in both) / 2}


def measure(
    sides: Mapping[tuple[str, str], Side],
    twins: Mapping[str, Side],
    files: Path,
    query: str,
    runs: int,
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the least of each figure by side and place, of runs that take turns behind one warm run.

    The least, because other work on the machine only adds to both kinds of time.
    """
    taken: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(runs + 1):
        for (name, place), side in sides.items():
            figures = (
                run_twice_at_once(side, twins[name], files, query)
                if place == TWO_JOBS
                else side.run(files, query, place)
            )
            taken.setdefault((name, place), []).append(figures)
    return {
        key: {figure: min(run[figure] for run in each[1:]) for figure in each[0]}
        for key, each in taken.items()
    }


def report(arguments: argparse.Namespace) -> None:
    """Print a line a query and side, then the means of what the second slot gives."""
    from bench import nexmark_events

    checkouts = {"this": HERE}
    if arguments.against is not None:
        checkouts["other"] = arguments.against.resolve()
    places = [place for place in PLACES if not arguments.places or place in arguments.places.split(",")]
    sides = {(name, place): Side(checkout) for place in places for name, checkout in checkouts.items()}
    twins = {name: Side(checkout) for name, checkout in checkouts.items()} if TWO_JOBS in places else {}
    pairs = [("1 slot", place) for place in (*_AIMS, TWO_JOBS)] + [("DuckDB 1", "DuckDB 2")]
    # without one place to compare with there is only the time
    pairs = [pair for pair in pairs if set(pair) <= set(places)]
    print(
        f"{'':6} {'':6}"
        + "".join(f"{place:>12}" for place in places)
        + "".join(f"{two + ': gain, cpu':>26}" for _, two in pairs)
        + f"{'switches':>20}   (s by the clock; least of {arguments.runs})"
    )
    gains: dict[tuple[str, str], list[float]] = {}
    for query in arguments.queries.split(","):
        events = arguments.events * (FEW_ROWS_FACTOR if query in FEW_ROWS else 1)
        kinds = ("person", "auction") if query in FEW_ROWS else nexmark_events.KINDS
        files = nexmark_events.written(arguments.folder.resolve(), events, kinds, ("parquet",))
        figures = measure(sides, twins, files, query, arguments.runs)
        for name in checkouts:
            of = {place: figures[name, place] for place in places}
            line = f"{query:6} {name:6}" + "".join(f"{of[place]['wall_s']:12.3f}" for place in places)
            for one, two in pairs:
                gain = of[one]["wall_s"] / of[two]["wall_s"]
                gains.setdefault((name, two), []).append(gain)
                line += f"{gain:19.2f}x {of[two]['cpu_s'] / of[one]['cpu_s']:4.2f}x"
            switches = "/".join(f"{of[place]['switches']:.0f}" for place in places if "slot" in place)
            print(f"{line}{switches:>20}", flush=True)
    for (name, place), each in gains.items():
        mean = math.exp(sum(math.log(gain) for gain in each) / len(each))
        aim = f", aim {_AIMS[place]}" if place in _AIMS else ""
        print(f"{name}, {place}: geometric mean {mean:.2f}x, least {min(each):.2f}x{aim}")
    for side in (*sides.values(), *twins.values()):
        side.close()


def main() -> None:
    """Run the queries that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.slots", description=__doc__)
    parser.add_argument("--queries", default=",".join(QUERIES), help="which, such as q0,count (all)")
    parser.add_argument("--places", default="", help=f"which of {', '.join(PLACES)} (all)")
    parser.add_argument("--events", type=int, default=10_000_000, help="events of Nexmark (10 million)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each, behind a warm one (3)")
    parser.add_argument("--against", type=Path, help="another checkout that runs the same")
    parser.add_argument("--folder", type=Path, default=Path("out/bench"), help="where the events are kept")
    report(parser.parse_args())


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        main()
