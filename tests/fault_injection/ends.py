"""Card ``ends``: programs that end at any moment, in any way. No abort, no noise, no row lost in silence,
none twice.

Each end is one process: a client (with and without ``with``) or the command line (``-c``, ``-f``, a pipe,
``run``), over sources that end, that do not, or both, with and without a state. It is ended at a drawn moment
by the end of main, an exception, ``sys.exit``, Ctrl-C, SIGTERM, or a ``close`` from another thread. What must
then hold is in ``judge``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from penstock.client.session import Session
from tests.fault_injection.ends_tables import (
    ROWS,
    committed,
    declarations,
    lost_or_doubled,
    write_numbers,
)
from tests.fault_injection.verdict import Verdict
from tests.harness.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
CLIENT_ENDS = ("main", "exception", "exit", "close", "SIGINT", "SIGTERM")
FACES = ("client", "client with", "-c", "-f", "pipe", "run")
ABORTS = re.compile(
    r"terminate called|nanobind|Fatal Python error|Segmentation|core dumped|Exception ignored|Exception in thread|pure virtual"
)
CODES = {
    "main": (0,),
    "close": (0,),
    "exit": (7,),
    "exception": (1,),
    "SIGINT": (-signal.SIGINT, 1),
    "SIGTERM": (-signal.SIGTERM,),
    "hard": (0,),
}


@dataclass(frozen=True)
class End:
    """One program and how it ends. ``ends_itself``: no signal is sent, all its sources end."""

    number: int
    face: str
    job: str
    state: bool
    how: str
    moment_s: float

    @classmethod
    def drawn(cls, seed: int, number: int) -> End:
        """Return the ``number``-th end of a seed; every face and way comes up soon."""
        draw = random.Random(f"{seed}-{number}")
        face = FACES[number % len(FACES)]
        if face.startswith("client"):
            how, job = (
                CLIENT_ENDS[(number // len(FACES) + number) % len(CLIENT_ENDS)],
                draw.choice(("bounded", "endless", "both", "query")),
            )
        else:
            how, job = draw.choice(("SIGINT", "SIGTERM", "main")), draw.choice(("bounded", "endless", "both"))
            how = "SIGTERM" if how == "main" and job != "bounded" else how
        state = draw.random() < 0.5 and face in ("client", "client with", "run", "-f") and job != "query"
        return cls(number, face, job, state, how, round(draw.random() * 0.5, 3))

    @property
    def signal(self) -> signal.Signals | None:
        """What is sent to it."""
        return signal.Signals[self.how] if self.how in ("SIGINT", "SIGTERM") else None


@dataclass
class Outcome:
    """What a program has said and left."""

    code: int
    out: str
    err: str
    copied: dict[int, int] = field(default_factory=dict)
    streamed: dict[int, int] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=24, help="programs to end")
    parser.add_argument("--first", type=int, default=0, help="number of the first of them")
    parser.add_argument("--beside", type=int, default=2, help="programs at a time")
    parser.add_argument(
        "--hard",
        action="store_true",
        help="negative control: programs leave by os._exit and are judged as if by the end of main",
    )


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """End programs and judge each."""
    write_numbers(arguments.directory / "numbers")
    ends = [End.drawn(arguments.seed, arguments.first + number) for number in range(arguments.count)]
    if arguments.hard:
        ends = [End(end.number, "client", "endless", False, "main", 0.1) for end in ends]

    def one(end: End) -> tuple[End, Outcome, list[str]]:
        root = arguments.directory / str(end.number)
        outcome = carry_out(end, root, really="hard" if arguments.hard else end.how)
        return end, outcome, judge(end, outcome) + gone_on(end, outcome, root)

    # a shell starts what runs behind it with Ctrl-C ignored, and who is started takes that over
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        report(ends, one, arguments.beside, verdict)
    finally:
        signal.signal(signal.SIGINT, before)


def report(
    ends: list[End], one: Callable[[End], tuple[End, Outcome, list[str]]], beside: int, verdict: Verdict
) -> None:
    """Carry out ends, several at a time, and note what was wrong."""
    with ThreadPoolExecutor(beside) as pool:
        for end, outcome, wrong in pool.map(one, ends):
            verdict.faults.append(f"{end}: {outcome.code}")
            verdict.coverage.update(
                (
                    end.face,
                    f"end: {end.how}",
                    f"job: {end.job}",
                    "with state" if end.state else "without state",
                )
            )
            verdict.coverage["an INSERT was under way"] += (
                "started" in outcome.out and "finished" not in outcome.out
            )
            verdict.wrong += [
                f"{end}: {sentence}\n{outcome.out[-300:]}\n{outcome.err[-1500:]}" for sentence in wrong
            ]


def carry_out(end: End, root: Path, *, really: str) -> Outcome:
    """Run a program to its end."""
    root.mkdir()
    state = str(root / "state") if end.state else ""
    if end.face.startswith("client"):
        asked = {
            "root": str(root),
            "state": state,
            "with": end.face == "client with",
            "how": really,
            "job": end.job,
            "moment_s": end.moment_s,
        }
        words, text = ["-m", "tests.fault_injection.ends_program", json.dumps(asked)], None
    else:
        words, text = command(end, root, state)
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    errors: list[str] = []
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    stderr = process.stderr
    listening = threading.Thread(target=lambda: errors.append(stderr.read()))
    listening.start()
    if text is not None:
        process.stdin.write(text)
    process.stdin.close()
    for line in process.stdout:
        said.append(line)
        if line == "ready\n" and end.signal is not None:
            threading.Timer(end.moment_s, process.send_signal, (end.signal,)).start()
    code = process.wait(PATIENCE_S)
    listening.join(PATIENCE_S)
    return Outcome(
        code,
        "".join(said),
        "".join(errors),
        dict(committed(root, "copied")),
        dict(committed(root, "streamed")),
    )


def command(end: End, root: Path, state: str) -> tuple[list[str], str | None]:
    """Return the words of a command line and what it reads from a pipe."""
    statements = [*declarations(root)]
    if end.job in ("endless", "both"):
        statements.append("INSERT INTO streamed SELECT a FROM endless")
    statements.append("SELECT 'ready' AS said")
    if end.job in ("bounded", "both"):
        statements.append("INSERT INTO copied SELECT a FROM numbers")
    script = ";\n".join(statements) + ";\n"
    settings = [
        "--set",
        "bounded.backend=duckdb",
        "--set",
        "execution.batch.max-rows=500",
        "--set",
        "execution.checkpointing.interval=30 ms",
        "--csv",
    ]
    if state:
        settings += ["--set", f"execution.checkpointing.dir={state}"]
    path = root / "script.sql"
    path.write_text(script, encoding="utf-8")
    match end.face:
        case "-c":
            return [
                "-m",
                "penstock",
                *settings,
                *[word for statement in statements for word in ("-c", statement)],
            ], None
        case "-f":
            return ["-m", "penstock", *settings, "-f", str(path)], None
        case "run":
            return ["-m", "penstock", *settings, "run", str(path)], None
    return ["-m", "penstock", *settings], script


def judge(end: End, outcome: Outcome) -> list[str]:
    """Return what is wrong with an end: its code, noise, rows of a finished INSERT, rows that are there
    twice, a stopped job that nobody named.
    """
    wrong = []
    client = end.face.startswith("client")
    codes = (
        CODES[end.how]
        if client
        else (0,)
        if end.signal is None
        else (130, 0)
        if end.job == "bounded"
        else (130,)
    )
    came_late = (
        not client
        and end.job == "bounded"
        and len(outcome.copied) == ROWS
        and end.signal is not None
        and outcome.code == -end.signal
    )
    # late: all was done, and nobody listened for signals any more
    if outcome.code not in codes and not came_late:
        wrong.append(f"exit code {outcome.code}, not {' or '.join(map(str, codes))}")
    if (noise := ABORTS.search(outcome.err)) is not None:
        wrong.append(f"noise: {noise[0]}")
    own = 1 if client and end.how in ("exception", "SIGINT") else 0
    if outcome.err.count("Traceback (most recent call last)") > own:
        wrong.append("a traceback that is not the program's own")
    for name, rows in (("copied", outcome.copied), ("streamed", outcome.streamed)):
        if any(count > 1 for count in rows.values()):
            wrong.append(f"rows of {name} are there twice")
    finished = f"finished {ROWS}" in outcome.out if client else end.signal is None and end.job == "bounded"
    if finished and len(outcome.copied) != ROWS:
        wrong.append(f"the INSERT was finished, and {ROWS - len(outcome.copied)} of its rows are not there")
    if "finished" in outcome.out and not finished:
        wrong.append("the INSERT was finished with another number of rows")
    started = re.search(
        r"started (\S+)", outcome.out if client else outcome.err.replace("job ", "started ", 1)
    )
    in_order = not (client and end.how == "SIGTERM")  # nobody has asked for it to be heard
    if end.job in ("endless", "both") and in_order and "ready" in outcome.out:
        name = started[1] if started else "insert-into-streamed"
        if not re.search(rf"job {re.escape(name)}.*stopp", outcome.err):
            wrong.append(f"nobody says that job {name} was stopped")
    return wrong


def gone_on(end: End, outcome: Outcome, root: Path) -> list[str]:
    """Let what kept a state go on, in another session, and return what is wrong with the rows in the end."""
    wanted = [("streamed", "endless")] if end.job in ("endless", "both") else []
    wanted += [("copied", "numbers")] if end.job in ("bounded", "both") else []
    if not end.state or "ready" not in outcome.out:
        return []
    settings = {
        "bounded.backend": "duckdb",
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": str(root / "state"),
    }
    session, wrong = Session(settings), []
    session.state.report = lambda sentence: None
    try:
        for declaration in declarations(root):
            session.execute(declaration)
        for sink, source in wanted:
            session.execute(f"INSERT INTO {sink} SELECT a FROM {source}")
            pause, left_s = threading.Event(), PATIENCE_S
            while sum(committed(root, sink).values()) < ROWS and left_s > 0:
                pause.wait(0.05)
                left_s -= 0.05
    finally:
        session.close()
    for sink, _ in wanted:
        if (sentence := lost_or_doubled(committed(root, sink))) is not None:
            wrong.append(f"{sink} has gone on, and {sentence}")
    return wrong
