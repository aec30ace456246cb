"""The card of outsized things: what is too large for memory, for an array or for a plan is answered in
bounded memory, or refused in a sentence.

Each thing is done in a process of its own, so that its peak of memory is known. As a program: one thing, by
name.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.job.job import Job
from tests.fault_injection.job_process import ROOT
from tests.fault_injection.verdict import Verdict

_TIMEOUT_S = 900
_PLAIN_MB = 700
"""What a session takes whose data is small, kernels compiled included."""


@dataclass(frozen=True)
class Thing:
    """Statements whose last one gives ``answer`` (its one row), or is refused with a code; ``most_mb`` of
    memory is allowed.

    With ``entries`` the last one starts a job that does not end: it is stopped behind a checkpoint of so many
    entries, and what counts is a second process that restores it.
    """

    statements: tuple[str, ...]
    answer: str
    most_mb: int = _PLAIN_MB
    settings: tuple[tuple[str, str], ...] = ()
    entries: int = 0


def _numbers(name: str, rows: int) -> str:
    kind = f"'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '{rows}'"
    return f"CREATE TABLE {name} (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '{rows}', {kind})"


_TIMED = "CREATE TABLE e (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', 'number-of-rows' = '3')"
_WIDE_ROWS = 2_400
_WIDE = f"CREATE VIEW wide AS SELECT k, CONCAT(REPEAT('x', 1000000), CAST(k AS STRING)) AS x FROM (SELECT * FROM w{_WIDE_ROWS}) AS n"
_FEW_AT_ONCE = (("execution.batch.max-rows", "64"),)
_WIDE_MB = 9_000
_DOUBLED = ", ".join(
    f"v{i} AS (SELECT x.a FROM v{i - 1} AS x JOIN v{i - 1} AS y ON x.a = y.a)" for i in range(1, 27)
)
_ARRAYS = "ARRAY<" * 3_000 + "INT" + ">" * 3_000
_CUMULATED = "TABLE(CUMULATE(TABLE e, DESCRIPTOR(ts), INTERVAL '0.001' SECOND, INTERVAL '1' DAY))"
_HOPPED = "TABLE(HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '1' DAY))"
_OUT = "CREATE TABLE o (k INT, x STRING) WITH ('connector' = 'blackhole')"
_FIRST = "SELECT k, x FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) AS r FROM wide) AS t WHERE r = 1"

_LISTED = "SELECT k % {groups} AS g, LISTAGG(x, ',') AS v FROM wide GROUP BY k % {groups}"
_LISTS = "SELECT SUM(CHAR_LENGTH(v)) AS n FROM ({listed}) AS t"
_LISTED_CHARS = sum(1_000_000 + len(str(k)) for k in range(1, _WIDE_ROWS + 1)) + _WIDE_ROWS
_LISTS_MB = 14_000

THINGS: dict[str, Thing] = {
    "a join of one hot key, 8,000 x 8,000 rows, state budget 64 MB": Thing(
        (
            _numbers("a", 8_000),
            _numbers("b", 8_000),
            "SELECT COUNT(*) AS n FROM a JOIN b ON a.k * 0 = b.k * 0",
        ),
        "64000000",
        settings=(("state.memory.budget-per-slot", "64 mb"),),
    ),
    "CROSS JOIN of 30,000 x 30,000 rows": Thing(
        (_numbers("a", 30_000), _numbers("b", 30_000), "SELECT COUNT(*) AS n FROM a CROSS JOIN b"),
        "900000000",
    ),
    "one row that gives 100,000,000": Thing(
        (_numbers("a", 1), "SELECT COUNT(*) AS n FROM a, LATERAL range(0, 100000000) AS q (g)"), "100000000"
    ),
    "HOP of 1 s in 1 day: 86,400 windows a row": Thing(
        (_TIMED, f"SELECT COUNT(*) AS n FROM (SELECT k FROM {_HOPPED}) AS t"), "259200"
    ),
    "CUMULATE of 1 ms in 1 day": Thing(
        (_TIMED, f"SELECT COUNT(*) FROM {_CUMULATED} GROUP BY window_start, window_end"), "SQL-1715"
    ),
    "a type of 3,000 nested ARRAYs": Thing((f"SELECT CAST(NULL AS {_ARRAYS}) AS x",), "SQL-1017"),
    "26 names that each double the one before": Thing(
        (f"WITH v0 AS (SELECT 1 AS a), {_DOUBLED} SELECT a FROM v26",), "SQL-1016"
    ),
    "2.4 GB of text in a join's state": Thing(
        (
            _numbers(f"w{_WIDE_ROWS}", _WIDE_ROWS),
            _WIDE,
            _numbers("b", _WIDE_ROWS),
            "SELECT COUNT(*) AS n FROM wide JOIN b ON wide.k = b.k WHERE CHAR_LENGTH(x) > b.k",
        ),
        str(_WIDE_ROWS),
        _WIDE_MB,
        _FEW_AT_ONCE,
    ),
    "2.4 GB of text in Top-1's state": Thing(
        (
            _numbers(f"w{_WIDE_ROWS}", _WIDE_ROWS),
            _WIDE,
            f"SELECT COUNT(*) AS n FROM ({_FIRST}) AS t WHERE CHAR_LENGTH(x) > 0",
        ),
        str(_WIDE_ROWS),
        _WIDE_MB,
        _FEW_AT_ONCE,
    ),
    "2.4 GB of text in a checkpoint of Top-1": Thing(
        (
            _numbers(f"w{_WIDE_ROWS}", _WIDE_ROWS),
            _WIDE,
            "CREATE TABLE o (k INT, x STRING) WITH ('connector' = 'blackhole')",
            f"INSERT INTO o {_FIRST}",
        ),
        "",
        _WIDE_MB,
        (*_FEW_AT_ONCE, ("execution.checkpointing.interval", "2 s"), ("table.dml-sync", "true")),
    ),
    "restore of a checkpoint with 2.4 GB of text": Thing(
        (
            _numbers(f"w{_WIDE_ROWS}", _WIDE_ROWS),
            "CREATE TABLE slow (k INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1')",
            _WIDE.replace(
                f"SELECT * FROM w{_WIDE_ROWS}", f"SELECT k FROM w{_WIDE_ROWS} UNION ALL SELECT k FROM slow"
            ),
            _OUT,
            f"INSERT INTO o {_FIRST}",
        ),
        "restored",
        _WIDE_MB,
        (*_FEW_AT_ONCE, ("execution.checkpointing.interval", "2 s"), ("table.dml-sync", "false")),
        _WIDE_ROWS,
    ),
    "LISTAGG of 2.4 GB into 6 groups": Thing(
        (
            _numbers(f"w{_WIDE_ROWS}", _WIDE_ROWS),
            _WIDE,
            _LISTS.format(listed=_LISTED.format(groups=6)),
        ),
        str(_LISTED_CHARS - 6),
        _LISTS_MB,
        _FEW_AT_ONCE,
    ),
    "LISTAGG of 2.4 GB into one value": Thing(
        (
            _numbers(f"w{_WIDE_ROWS}", _WIDE_ROWS),
            _WIDE,
            _LISTS.format(listed=_LISTED.format(groups=1)),
        ),
        "RUN-2023",
        _LISTS_MB,
        _FEW_AT_ONCE,
    ),
    "a result of 2.4 GB of text": Thing(
        (_numbers(f"w{_WIDE_ROWS}", _WIDE_ROWS), _WIDE, "SELECT k, x FROM wide"),
        f"{_WIDE_ROWS} rows",
        _WIDE_MB,
        _FEW_AT_ONCE,
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="do the things whose names hold this")
    parser.add_argument("--quick", action="store_true", help="leave out what takes gigabytes or minutes")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Do all things, one after the other, and print a line for each."""
    chosen = [
        name
        for name, thing in THINGS.items()
        if arguments.only in name and not (arguments.quick and _is_slow(name, thing))
    ]
    verdict.least = {"things": 1}
    for number, name in enumerate(chosen):
        # a state directory each: jobs that write into one table name have one name
        found = _in_a_process(name, arguments.directory / str(number))
        thing = THINGS[name]
        verdict.coverage["things"] += 1
        print(f"{name}: {found['said']}; peak {found['peak_mb']:,} MB, {found['seconds']:.0f} s", flush=True)
        verdict.check(found["got"] == thing.answer, f"{name}: {found['said']}, expected {thing.answer}")
        verdict.check(
            found["peak_mb"] <= thing.most_mb,
            f"{name} took {found['peak_mb']:,} MB, allowed are {thing.most_mb:,}",
        )
        verdict.figures[name] = f"{found['said']}; peak {found['peak_mb']} MB"


def _is_slow(name: str, thing: Thing) -> bool:
    return thing.most_mb > _PLAIN_MB or "x 30,000" in name or "100,000,000" in name


def _in_a_process(name: str, directory: Path) -> dict:
    if not THINGS[name].entries:
        return _process(name, directory)
    written = _process(name, directory)
    return _process(name, directory) if written["got"] == "read" else written


def _process(name: str, directory: Path) -> dict:
    words = [sys.executable, "-m", "tests.fault_injection.outsized", name, str(directory.absolute())]
    try:
        done = subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"said": f"no answer in {_TIMEOUT_S} s", "got": "", "peak_mb": 0, "seconds": _TIMEOUT_S}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return {
            "said": f"ended with {done.returncode}: {done.stderr[-300:]}",
            "got": "",
            "peak_mb": 0,
            "seconds": 0,
        }
    return json.loads(lines[-1])


def main(name: str, directory: str) -> None:
    """Do one thing; print what came of it and the peak of memory as JSON."""
    thing, started = THINGS[name], time.monotonic()
    session = Session(
        {"bounded.backend": "duckdb", "execution.runtime-mode": "streaming", **dict(thing.settings)}
    )
    if any(key.startswith("execution.checkpointing") for key, _ in thing.settings):
        session.settings.set("execution.checkpointing.dir", f"{directory}/state")
    try:
        for statement in thing.statements:
            result = session.execute(statement)
        if thing.entries:
            got = said = _stopped_at(session, result.job, thing.entries)
        else:
            got = said = _answer(result.final_rows()) if not statement.startswith("INSERT") else ""
            said = said or "done"
    except PenstockError as error:
        got, said = error.code, f"{error.code}: {error.message}"
    print(
        json.dumps({"said": said, "got": got, "peak_mb": _peak_mb(), "seconds": time.monotonic() - started})
    )


def _stopped_at(session: Session, job: Job, entries: int) -> str:
    """Stop a job behind a checkpoint with so many entries of state; return whether it had ``read`` or
    ``restored`` them.
    """
    _await(job, lambda: sum(o.state_entries for o in job.metrics().operators) >= entries)
    known = len(job.checkpoints)
    _await(job, lambda: len(job.checkpoints) > known)
    session.execute(f"STOP JOB '{job.job_id}'")
    job.wait(_TIMEOUT_S)
    return "restored" if job.metrics().rows_in < entries else "read"


def _await(job: Job, happened: Callable[[], bool]) -> None:
    """Wait for what happens while the job runs; the card ends a process that waits too long."""
    while not happened():
        assert not job.state.terminal, job.error
        time.sleep(0.05)


def _peak_mb() -> int:
    """Return the most memory of this program; ``ru_maxrss`` would count that of the process it was forked
    from.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1024


def _answer(rows) -> str:
    return (
        str(rows.column(0)[0].as_py())
        if rows.num_columns == 1 and rows.num_rows == 1
        else f"{rows.num_rows} rows"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
