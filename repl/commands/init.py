"""``penstock init``: a project that runs. It writes new files only."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.repl.launch.parser import EXIT_OK, EXIT_USAGE
from penstock.repl.launch.session_factory import messages_for

# as penstock fmt writes it
_SCRIPT = """\
-- How many visits each page has in a minute, as windows close.
--
--   penstock run job.sql
--   penstock run job.sql --watch     runs again whenever this file is saved

CREATE TABLE visits (
  page STRING,
  visitor INT,
  seconds INT,
  ts TIMESTAMP(3),
  -- rows may come ten seconds late
  WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
) WITH (
  'connector' = 'filesystem',
  'path' = 'data/visits.csv',
  -- a stream that ends; 'source.monitor-interval' = '1 s' waits for new files in a directory instead
  'source.replay' = 'true'
);

CREATE VIEW visits_per_minute AS
SELECT window_start, page, COUNT(*) AS visits, SUM(seconds) AS seconds
FROM TABLE(TUMBLE(TABLE visits, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, page;

SELECT * FROM visits_per_minute;

-- To write Parquet files, each row exactly once, and to resume after a crash:
--
--   CREATE TABLE totals (window_start TIMESTAMP(3), page STRING, visits BIGINT, seconds BIGINT)
--   WITH ('connector' = 'filesystem', 'path' = 'out/totals', 'format' = 'parquet');
--   INSERT INTO totals SELECT * FROM visits_per_minute;
--
--   penstock run job.sql --state out/state
"""

_README = """\
# A penstock project

- `job.sql`: counts the visits of each page in a minute.
- `data/visits.csv`: the visits. Replace them with your own, and the columns in `job.sql` with theirs.

Run the commands in this directory: the paths in `job.sql` begin here.

    penstock run job.sql --watch    # runs, and runs again whenever job.sql is saved
    penstock run job.sql --check    # prints every error and runs nothing
    penstock test                   # runs job.test.sql: given rows, expected rows
"""

# three minutes; one row is late by less than the watermark allows
_DATA = """\
page,visitor,seconds,ts
/,1,12,2026-01-05 09:00:03
/pricing,1,40,2026-01-05 09:00:15
/,2,5,2026-01-05 09:00:21
/docs,3,95,2026-01-05 09:00:40
/,3,7,2026-01-05 09:00:38
/pricing,2,61,2026-01-05 09:00:58
/,4,9,2026-01-05 09:01:02
/docs,4,130,2026-01-05 09:01:11
/pricing,5,22,2026-01-05 09:01:30
/,5,4,2026-01-05 09:01:44
/docs,1,75,2026-01-05 09:01:52
/,6,15,2026-01-05 09:02:05
/docs,6,210,2026-01-05 09:02:20
/pricing,6,33,2026-01-05 09:02:41
/,7,8,2026-01-05 09:02:59
"""

_TEST = """\
-- Tests of job.sql: penstock test

TEST 'visits count by page and minute, and ten seconds late is in time'
GIVEN visits (page, seconds, ts) VALUES
  ('/', 10, TIMESTAMP '2026-01-05 09:00:50'),
  ('/docs', 90, TIMESTAMP '2026-01-05 09:01:05'),
  ('/', 20, TIMESTAMP '2026-01-05 09:00:55')
EXPECT visits_per_minute VALUES
  (TIMESTAMP '2026-01-05 09:00:00', '/', 2, 30),
  (TIMESTAMP '2026-01-05 09:01:00', '/docs', 1, 90);
"""

PROJECT = {"README.md": _README, "job.sql": _SCRIPT, "job.test.sql": _TEST, "data/visits.csv": _DATA}
"""The files of a project by their paths in it."""


def make_project(arguments: argparse.Namespace) -> int:
    """Write the files of a project and return the exit code. When one of them exists, nothing is written."""
    messages, root = messages_for(arguments), Path(arguments.directory)
    try:
        for path in _write(root):
            sys.stdout.write(f"wrote {path}\n")
    except PenstockError as error:
        messages.error(error)
        return EXIT_USAGE
    run = "penstock run job.sql"
    there = "" if root.resolve() == Path.cwd() else f"cd {_quoted(arguments.directory)} && "
    messages.note(f"now: {there}{run}")
    return EXIT_OK


def _write(root: Path) -> list[Path]:
    there = [name for name in PROJECT if (root / name).exists() or (root / name).is_symlink()]
    if there:
        raise PenstockError(
            "CLI-6152",
            f"{root / there[0]} exists already; nothing was written",
            hint=f"name a new directory: penstock init {_new_name(root)}",
            kind=Kind.EXTERNAL,
            sqlstate="58030",
        )
    written = []
    try:
        for name, text in PROJECT.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # x: a file that came to be a moment ago is not overwritten either
            with path.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
            written.append(path)
    except OSError as error:
        done = f"; {', '.join(map(str, written))} had been written" if written else ""
        raise PenstockError(
            "CLI-6153",
            f"cannot write {error.filename or root}: {(error.strerror or str(error)).lower()}{done}",
            hint="name a directory that can be written",
            kind=Kind.EXTERNAL,
            sqlstate="58030",
        ) from error
    return written


def _new_name(root: Path) -> str:
    """Return the name of a directory that does not exist, for the hint."""
    name = "my-project" if root == Path() else f"{root}-2"
    number = 3
    while Path(name).exists():
        name, number = f"{root if root != Path() else 'my-project'}-{number}", number + 1
    return _quoted(name)


def _quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name
