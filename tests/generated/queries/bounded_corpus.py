"""The language as questions to three runtimes: the rows of docs/LANGUAGE_STATUS.md, the golden scripts that
are queries, and the queries on flights.

``python -m tests.generated.queries.bounded_corpus`` asks all of them of our own runtime (folded), of DuckDB and of
Spark, and prints one line for each.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.client.statements.dispatch import LocatedStatement
from penstock.client.statements.verify import difference
from penstock.planner.statements.nodes import Insert, Query
from tests.harness.case_files import case_files
from tests.harness.golden import read_cases
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.main_job import sample
from tests.streaming.three_acts.oracle import ROOT
from tests.test_docs import MODULE, ROW_FUNCTIONS, STATUS, blocks, status_rows

SCRIPTS = ROOT / "tests" / "unit" / "planner" / "scripts"
FLIGHTS = tuple(case_files(ROOT / "queries", "*.sql"))
_ROWS = {
    "bid": """'fields.auction.min' = '1', 'fields.auction.max' = '6', 'fields.bidder.min' = '1', 'fields.bidder.max' = '5', 'fields.price.min' = '1',
        'fields.price.max' = '300', 'fields.channel.values' = 'pen,ink,web', 'fields.ts.kind' = 'sequence', 'fields.ts.start' = '2026-01-01 00:00:00',
        'fields.ts.step' = '20 s'""",
    "person": """'fields.id.min' = '1', 'fields.id.max' = '6', 'fields.name.values' = 'pen,ann,bob', 'fields.city.values' = 'pen,rome,oslo',
        'fields.score.min' = '0', 'fields.score.max' = '9', 'fields.joined.kind' = 'sequence', 'fields.joined.start' = '2026-01-01 00:00:00',
        'fields.joined.step' = '40 s'""",
    "log": "'fields.at.min' = '1', 'fields.at.max' = '9', 'fields.line.values' = 'a b,c,x y z'",
}
_FILES = {
    "city.csv": "name,country,size\npen,NL,3\nink,BE,5\nrome,IT,9\npen,FR,4\n,BE,\n",
    "airline.csv": "carrier,name\nAA,pen\nBB,\nCC,delta\nDD,pen\n",
}
EXCUSED = {
    "SESSION(TABLE changes": "a late row is dropped from a stream, and a table is read whole",
    "PROCTIME": "each run has its own clock",
    "PARTITION BY auction ORDER BY p)": "each run has its own clock",
    "rate FOR SYSTEM_TIME": "an endless table has no batch",
    "$errors": "what a run found wrong is told of that run",
    "$late": "what a run found late is told of that run",
    "stack(2, 1, 'a'": "its values raise, on every runtime",
    "SELECT name FROM city LIMIT": "any rows will do",
    "ORDER BY size DESC, upper(name)": "a stream is put in order by columns it shows",
    "ORDER BY ts, price DESC": "a stream is put in order by columns it shows",
    "SELECT * FROM r": "its file is not there",
    "SELECT * FROM t": "its file is not there",
    "FROM flight_delays": "its file is not there",
}
"""What stands in queries whose answers may differ, and why. A key that is a whole query by its look,
``SELECT * FROM t``, must be all of it.
"""


@dataclass(frozen=True)
class Asked:
    """One query of the corpus in a session in which it can be asked."""

    about: str
    session: Session
    statement: LocatedStatement

    @property
    def text(self) -> str:
        return " ".join(self.statement.text.split())


@dataclass(frozen=True)
class Told:
    """What came of it: ``equal``, what differs, or the error; ``parts``: whether our own runtime ran a
    part of it for the backend.
    """

    asked: Asked
    backend: str
    verdict: str
    rows: int
    parts: bool = False


def workplace(folder: Path) -> Path:
    """Fill a directory with what the corpus reads and make it the current one."""
    (folder / "queries").symlink_to(ROOT / "queries")
    (folder / f"{MODULE}.py").write_text(ROW_FUNCTIONS, encoding="utf-8")
    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    os.chdir(folder)
    return folder


def asked_of_status(every: int = 1, since: str = "") -> Iterator[Asked]:
    """The queries of the page that says what works, from a construct on; what else stands in its rows is
    run on the way.
    """
    session, last, number = Session(), "", 0
    rows = status_rows()
    rows = rows[[about for about, _, _ in rows].index(since) if since else 0 :]
    try:
        for statement in [
            statement for text in blocks(STATUS, "sql") for statement in session.parse(text, STATUS.name)
        ]:
            session.run(statement)
        for about, code, text in rows:
            for statement in session.parse(text.replace("{last}", last)) if code is None else ():
                if isinstance(statement.node, Query):
                    number += 1
                    if number % every == 0:
                        yield Asked(about, session, statement)
                else:
                    result = session.run(statement)
                    last = result.job.job_id if result.job is not None else last
                    for _ in result.batches():
                        pass
    finally:
        session.close()


def golden_tables() -> str:
    """The tables of the golden scripts with an end, and rows that meet."""
    text = (ROOT / "tests" / "unit" / "planner" / "tables.sql").read_text(encoding="utf-8")
    for name, options in _ROWS.items():
        pattern = rf"(CREATE TABLE {name} .*?'connector' = 'datagen')"
        text = re.sub(
            pattern,
            rf"\1, 'number-of-rows' = '60', 'rows-per-second' = '0', {options}",
            text,
            count=1,
            flags=re.DOTALL,
        )
    return text


def asked_of_scripts(every: int = 1) -> Iterator[Asked]:
    """The queries of the golden scripts that have a plan."""
    tables, number = golden_tables(), 0
    for path in case_files(SCRIPTS, "plan_*.sql"):
        for case in read_cases(path):
            if case.expected.startswith("error[") or not case.input.lstrip().startswith(("SELECT", "WITH")):
                continue
            number += 1
            if number % every:
                continue
            session = Session({"execution.runtime-mode": "streaming"})
            try:
                for statement in session.parse(tables):
                    session.run(statement)
                for statement in session.parse(case.input):
                    if isinstance(statement.node, Query):
                        yield Asked(path.stem, session, statement)
                    elif not isinstance(statement.node, Insert):
                        session.run(statement)
            finally:
                session.close()


def asked_of_flights(flights: Path, every: int = 1) -> Iterator[Asked]:
    """The queries that are shipped, over some of the flights."""
    for path in FLIGHTS[::every]:
        text = (
            path.read_text(encoding="utf-8")
            .replace("queries/data/flights'", f"{flights}'")
            .replace("queries/data/", f"{ROOT}/queries/data/")
        )
        session = Session()
        try:
            for statement in session.parse(text.replace(", 'source.replay' = 'true'", ""), path.name):
                if isinstance(statement.node, Query):
                    yield Asked(path.stem, session, statement)
                elif not isinstance(statement.node, Insert):
                    session.run(statement)
        finally:
            session.close()


def excuse(asked: Asked) -> str | None:
    """Return why a query's answers may differ, if they may."""
    text = asked.text.rstrip(";")
    return next(
        (
            reason
            for words, reason in EXCUSED.items()
            if words in text and (not words.startswith("SELECT *") or words == text)
        ),
        None,
    )


def tell(asked: Asked, backends: Sequence[str]) -> list[Told]:
    """Ask our own runtime, fold its answer, and compare it with each backend's."""
    session = asked.session
    bound = session.pipeline.bind(asked.statement.node)  # type: ignore[arg-type]  # a query
    try:
        ours = session.pipeline.start(session.pipeline.plan(bound, mode="streaming")).final_rows(PATIENCE_S)
    except PenstockError as error:
        return [Told(asked, backend, f"stream: {error.code} {error.message}", 0) for backend in backends]
    timeless = [i for i, name in enumerate(ours.column_names) if name != "p"]
    told = []
    for backend in backends:
        try:
            planned = session.pipeline.plan(bound, mode="batch", backend=backend)
            theirs = session.pipeline.start(planned).final_rows(PATIENCE_S)
        except PenstockError as error:
            told.append(Told(asked, backend, f"{error.code} {error.message}", ours.num_rows))
            continue
        found = difference(ours.select(timeless), theirs.select(timeless))
        told.append(
            Told(
                asked, backend, "; ".join(found.lines()) or "equal", ours.num_rows, planned.graph is not None
            )
        )
    return told


def everything(flights: Path) -> Iterator[Asked]:
    """The whole corpus."""
    yield from asked_of_status()
    yield from asked_of_scripts()
    yield from asked_of_flights(flights)


def main(backends: Sequence[str]) -> int:
    """Ask everything, print a line for each answer, and return how many differ without an excuse."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as made:
        sys.path.insert(0, made)
        for asked in everything(sample(workplace(Path(made)) / "flights", 120)):
            reason = excuse(asked)
            for told in [] if reason else tell(asked, backends):
                kind = "wrong" if told.verdict != "equal" else "partly ours" if told.parts else "whole"
                counts[f"{told.backend}: {kind}"] += 1
                print(
                    f"{told.backend:6} {kind:11} {told.rows:5} rows  {asked.about}: {asked.text[:100]}",
                    flush=True,
                )
                if kind == "wrong":
                    print(f"       {told.verdict}")
            counts["excused" if reason else "asked"] += 1
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return sum(count for name, count in counts.items() if name.endswith("wrong"))


if __name__ == "__main__":
    sys.exit(min(1, main(tuple(sys.argv[1:]) or ("duckdb", "spark"))))
