"""Bad inputs that end a job in mid-run: what was committed before stays, and when the cause is cured the same
statement resumes with each row once.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.http_server import Answered, Asked, Server
from tests.harness.patience import PATIENCE_S, await_that
from tests.streaming.bad_inputs.scene import SETTINGS, rendered

FIRST, LATER = (1, 2, 3), (4, 5, 6)
Row = tuple[Any, ...]
Act = Callable[["Stage"], None]

# a stream of JSON files, the input of scenarios about sinks
FILES = """CREATE TABLE n (k BIGINT, v STRING) WITH ('connector' = 'filesystem', 'path' = '{here}/in',
  'format' = 'json', 'source.monitor-interval' = '10 ms');"""
# the output of scenarios about sources
OUT = """CREATE TABLE o (k BIGINT, v STRING) WITH ('connector' = 'filesystem', 'path' = '{here}/out',
  'format' = 'json');"""
INSERT = "INSERT INTO o SELECT k, v FROM n;"


@dataclass
class Stage:
    """One scenario's directory; ``server`` is an HTTP server where it asks for one."""

    here: Path
    server: Server | None = None
    posted: dict[str, bytes] = field(default_factory=dict)
    status: int = 200

    def files_written(self) -> list[Row]:
        """Return the rows of the files of ``out``."""
        return [
            (row["k"], row["v"])
            for path in (self.here / "out").glob("part-*")
            for row in map(json.loads, path.read_text().splitlines())
        ]

    def answer(self, asked: Asked) -> Answered:
        """Take rows, each idempotency key once, unless the server has a bad day."""
        if self.status == 200:
            self.posted[asked.headers["idempotency-key"]] = asked.body
        return Answered(b"", self.status, {"Retry-After": "0"})

    def connection(self) -> sqlite3.Connection:
        """Return a connection to the SQLite file."""
        return sqlite3.connect(self.here / "o.db", isolation_level=None, timeout=30)


def values(*keys: int) -> list[dict[str, Any]]:
    """Return the rows of some keys."""
    return [{"k": key, "v": f"v{key}"} for key in keys]


def add_json(stage: Stage, name: str, *keys: int) -> None:
    """Put a file of rows into ``in``, whole at once."""
    put(stage.here / "in" / f"{name}.json", "".join(json.dumps(row) + "\n" for row in values(*keys)).encode())


def put(path: Path, data: bytes) -> None:
    """Write a file that appears whole."""
    path.parent.mkdir(exist_ok=True)
    staged = path.parent.parent / "staged"
    staged.write_bytes(data)
    staged.rename(path)


def parquet(*keys: int) -> bytes:
    """Return a Parquet file of rows."""
    out = pa.BufferOutputStream()
    pq.write_table(table_of(*keys), out)
    return out.getvalue().to_pybytes()


def table_of(*keys: int) -> pa.Table:
    """Return rows as a table."""
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
    return pa.Table.from_pylist(values(*keys), schema=schema)


@dataclass(frozen=True)
class Resumed:
    """A scenario: ``script`` runs, ``begin`` gives it the first rows, ``spoil`` ends it with ``code`` while the
    later ones come, ``cure`` takes the cause away.
    """

    topic: str
    title: str
    code: str
    cured_by: str
    script: str
    begin: Act
    spoil: Act
    cure: Act
    committed: Callable[[Stage], list[Row]] = Stage.files_written


def run(case: Resumed, stage: Stage) -> str:
    """Play a scenario; return the error that a user sees."""
    wanted = [Counter((row["k"], row["v"]) for row in values(*keys)) for keys in (FIRST, (*FIRST, *LATER))]

    def committed() -> Counter[Row]:
        return Counter(case.committed(stage))

    case.begin(stage)
    session, job = _started(case, stage)
    try:
        await_that(lambda: committed() == wanted[0] or job.error, "the first rows", each_s=0.01)
        assert job.error is None, job.error.render()
        case.spoil(stage)
        assert job.wait(PATIENCE_S), f"{case.title}: the job does not end"
        error = job.error
    finally:
        session.close()
    assert isinstance(error, PenstockError), f"{case.title}: it has not failed"
    # what a failed job has committed is whole: nothing of it is lost, nothing is there twice
    assert committed() == wanted[0], f"{case.title}: {committed()}"
    case.cure(stage)
    session, job = _started(case, stage)
    try:
        await_that(lambda: committed() == wanted[1] or job.error, committed, each_s=0.01)
        assert job.error is None, job.error.render()
    finally:
        session.close()
    assert committed() == wanted[1]
    return rendered(error)


def _started(case: Resumed, stage: Stage) -> tuple[Session, Any]:
    session = Session({**SETTINGS, "table.dml-sync": "false"}, state_dir=stage.here / "state")
    job = None
    text = case.script.replace("{here}", str(stage.here))
    if stage.server is not None:
        text = text.replace("{http}", f"http://127.0.0.1:{stage.server.port}")
    for statement in session.parse(text):
        job = session.run(statement).job
    assert job is not None
    return session, job


def _files(path: str, file_format: str) -> str:
    return (
        f"CREATE TABLE n (k BIGINT, v STRING) WITH ('connector' = 'filesystem', 'path' = '{{here}}/{path}', "
        f"'format' = '{file_format}', 'source.monitor-interval' = '10 ms');"
    )


def _bad_record(stage: Stage) -> None:
    put(stage.here / "in" / "b.json", b'{"k": "four"}\n')


FILE_CASES = (
    Resumed(
        "Files",
        "A bad record in a new file",
        "DAT-4201",
        "the file is written anew",
        _files("in", "json") + OUT + INSERT,
        lambda stage: add_json(stage, "a", *FIRST),
        _bad_record,
        lambda stage: add_json(stage, "b", *LATER),
    ),
    Resumed(
        "Files",
        "A new Parquet file that ends early",
        "DAT-4105",
        "the file is copied again",
        _files("in", "parquet") + OUT + INSERT,
        lambda stage: put(stage.here / "in" / "a.parquet", parquet(*FIRST)),
        lambda stage: put(stage.here / "in" / "b.parquet", parquet(*LATER)[:-20]),
        lambda stage: put(stage.here / "in" / "b.parquet", parquet(*LATER)),
    ),
    Resumed(
        "Files",
        "A new file without a column",
        "DAT-4203",
        "the file is written anew",
        _files("in", "csv") + OUT + INSERT,
        lambda stage: put(stage.here / "in" / "a.csv", b"k,v\n1,v1\n2,v2\n3,v3\n"),
        lambda stage: put(stage.here / "in" / "b.csv", b"k,w\n4,v4\n5,v5\n6,v6\n"),
        lambda stage: put(stage.here / "in" / "b.csv", b"k,v\n4,v4\n5,v5\n6,v6\n"),
    ),
    Resumed(
        "Files",
        "A new file of another format",
        "DAT-4108",
        "the file is moved away",
        _files("in", "csv") + OUT + INSERT,
        lambda stage: put(stage.here / "in" / "a.csv", b"k,v\n1,v1\n2,v2\n3,v3\n"),
        lambda stage: put(stage.here / "in" / "b.parquet", parquet(*LATER)),
        lambda stage: (
            (stage.here / "in" / "b.parquet").unlink(),
            put(stage.here / "in" / "b.csv", b"k,v\n4,v4\n5,v5\n6,v6\n"),
        )[0],
    ),
)


def _sink(options: str, columns: str = "k BIGINT, v STRING") -> str:
    return FILES + f"CREATE TABLE o ({columns}) WITH ({options});" + INSERT


def _begin_sqlite(stage: Stage) -> None:
    add_json(stage, "a", *FIRST)
    with closing(stage.connection()) as made:
        made.execute("CREATE TABLE o (k INTEGER, v TEXT)")


def _sqlite(*statements: str) -> Act:
    def act(stage: Stage) -> None:
        with closing(stage.connection()) as made:
            for statement in statements:
                made.execute(statement)

    return act


def _sqlite_rows(stage: Stage) -> list[Row]:
    with closing(stage.connection()) as made:
        there = made.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('o', 'away')").fetchone()[0]
        name = "away" if made.execute("SELECT 1 FROM sqlite_master WHERE name = 'away'").fetchone() else "o"
        return made.execute(f"SELECT k, v FROM {name}").fetchall() if there else []


def _then_more(act: Act) -> Act:
    def both(stage: Stage) -> None:
        act(stage)
        add_json(stage, "b", *LATER)

    return both


def _status(number: int) -> Act:
    def act(stage: Stage) -> None:
        stage.status = number

    return act


def _posted_rows(stage: Stage) -> list[Row]:
    return [(row["k"], row["v"]) for body in stage.posted.values() for row in json.loads(body)]


def _replace_directory(stage: Stage) -> None:
    (stage.here / "out").rename(stage.here / "away")
    (stage.here / "out").write_text("a file where a directory was")


def _restore_directory(stage: Stage) -> None:
    (stage.here / "out").unlink()
    (stage.here / "away").rename(stage.here / "out")


def _rows_here_or_away(stage: Stage) -> list[Row]:
    away = stage.here / "away"
    return (
        Stage(away.parent, None).files_written()
        if not away.exists()
        else [
            (row["k"], row["v"])
            for path in away.glob("part-*")
            for row in map(json.loads, path.read_text().splitlines())
        ]
    )


_SQLITE = "'connector' = 'sqlite', 'path' = '{here}/o.db', 'table-name' = 'o'"
_HOOK = "'connector' = 'http', 'url' = '{http}/rows', 'format' = 'json', 'max-retries' = '0'"

SINK_CASES = (
    Resumed(
        "Sinks",
        "A constraint of the database that rows break",
        "DAT-4707",
        "the trigger is dropped",
        _sink(_SQLITE),
        _begin_sqlite,
        _then_more(
            _sqlite(
                "CREATE TRIGGER refused BEFORE INSERT ON o WHEN NEW.k = 5 BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
        ),
        _sqlite("DROP TRIGGER refused"),
        _sqlite_rows,
    ),
    Resumed(
        "Sinks",
        "A table of the database that is gone",
        "DAT-4707",
        "the table is named back",
        _sink(_SQLITE),
        _begin_sqlite,
        _then_more(_sqlite("ALTER TABLE o RENAME TO away")),
        _sqlite("ALTER TABLE away RENAME TO o"),
        _sqlite_rows,
    ),
    Resumed(
        "Sinks",
        "A webhook that fails (503)",
        "DAT-5702",
        "the server works again",
        _sink(_HOOK),
        lambda stage: add_json(stage, "a", *FIRST),
        _then_more(_status(503)),
        _status(200),
        _posted_rows,
    ),
    Resumed(
        "Sinks",
        "A webhook that asks for fewer requests (429)",
        "DAT-5702",
        "the server takes requests again",
        _sink(_HOOK),
        lambda stage: add_json(stage, "a", *FIRST),
        _then_more(_status(429)),
        _status(200),
        _posted_rows,
    ),
    Resumed(
        "Sinks",
        "A webhook whose token has expired (401)",
        "DAT-5702",
        "the token is renewed",
        _sink(_HOOK),
        lambda stage: add_json(stage, "a", *FIRST),
        _then_more(_status(401)),
        _status(200),
        _posted_rows,
    ),
    Resumed(
        "Sinks",
        "A file where the directory of a table was",
        "DAT-4606",
        "the directory is put back",
        FILES + OUT + INSERT,
        lambda stage: add_json(stage, "a", *FIRST),
        _then_more(_replace_directory),
        _restore_directory,
        _rows_here_or_away,
    ),
)
