"""Unit tests of SQL: what passes, what differs, what is refused, and their exit codes."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.catalog.errors import PenstockError
from penstock.repl.cli import main
from penstock.repl.sql_tests.declarations import read_test_file
from penstock.repl.sql_tests.row_difference import difference
from penstock.repl.sql_tests.runner import Outcome, run_test

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = """
SET 'bounded.backend' = 'spark';
CREATE TABLE clicks (name STRING, amount DECIMAL(8, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = '/nowhere/clicks', 'format' = 'csv', 'source.replay' = 'true');
CREATE TABLE people (name STRING, town STRING)
WITH ('connector' = 'filesystem', 'path' = '/nowhere/people', 'format' = 'csv');
CREATE TABLE minutes (start TIMESTAMP(3), clicks BIGINT)
WITH ('connector' = 'filesystem', 'path' = '/nowhere/minutes', 'format' = 'csv');
CREATE VIEW counts AS SELECT name, COUNT(*) AS clicks FROM clicks GROUP BY name;
CREATE VIEW towns AS SELECT c.name, p.town FROM clicks AS c JOIN people AS p ON c.name = p.name;
INSERT INTO minutes
SELECT window_start, COUNT(*) FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end;
SELECT SUM(clicks) AS total FROM minutes;
"""


def write(directory: Path, tests: str, script: str = SCRIPT) -> str:
    """Write a script and a test file beside it; return the test file's name."""
    (directory / "job.sql").write_text(script, encoding="utf-8")
    path = directory / "job.test.sql"
    path.write_text(tests, encoding="utf-8")
    return str(path)


def run_one(directory: Path, body: str) -> Outcome:
    """Run one test of the script."""
    file = read_test_file(write(directory, f"TEST 'it' {body};"))
    return run_test(file, file.tests[0])


CLICKS = "GIVEN clicks VALUES ('ann', 1.5, '2026-01-01 10:00:10'), ('bob', 2, '2026-01-01 10:00:50')"


@pytest.mark.parametrize(
    "body",
    [
        f"{CLICKS} EXPECT minutes VALUES ('2026-01-01 10:00:00', 2)",
        # the script's only query reads the table that its INSERT fills
        f"{CLICKS} EXPECT VALUES (2)",
        f"{CLICKS} EXPECT counts (clicks, name) VALUES (1, 'bob'), (1, 'ann')",
        f"{CLICKS} GIVEN people (name) VALUES ('ann'), ('eve') EXPECT towns VALUES ('ann', NULL)",
        f"{CLICKS} GIVEN people NO ROWS EXPECT towns NO ROWS",
        f"{CLICKS} EXPECT (SELECT MAX(amount) AS most FROM clicks) VALUES (2.00)",
        f"{CLICKS} EXPECT counts CHANGES VALUES ('+I', 'ann', 1), ('+I', 'bob', 1) EXPECT VALUES (2)",
        "GIVEN clicks (name) VALUES ('a'), ('a') "
        "EXPECT counts CHANGES VALUES ('+I', 'a', 1), ('-U', 'a', 1), ('+U', 'a', 2)",
    ],
)
def test_it_passes_on_the_rows_that_the_script_gives(tmp_path: Path, body: str) -> None:
    outcome = run_one(tmp_path, body)
    assert outcome.passed, (outcome.lines, outcome.error)


def test_a_watermark_between_rows_makes_the_next_ones_late(tmp_path: Path) -> None:
    first, late = "('a', 1, '2026-01-01 10:00:10')", "('a', 1, '2026-01-01 10:00:50')"
    expected = "EXPECT minutes (clicks) VALUES (1)"
    given = f"GIVEN clicks VALUES {first} WATERMARK '2026-01-01 10:01:00' VALUES {late}"
    assert run_one(tmp_path, f"{given} {expected}").passed
    # the control: without the watermark the same row counts
    outcome = run_one(tmp_path, f"GIVEN clicks VALUES {first} VALUES {late} {expected}")
    assert outcome.lines[0] == "EXPECT minutes: expected 1 row, actual 1 row: 1 missing, 1 extra"


def test_the_difference_shows_missing_extra_and_changed_rows() -> None:
    expected = [("ann", "x", 1), ("bob", "y", 2), ("cyd", "z", 3)]
    actual = [("bob", "y", 5), ("ann", "x", 1), ("dan", None, 9)]
    assert difference(["name", "k", "n"], expected, actual, ordered=False) == [
        "expected 3 rows, actual 3 rows: 1 missing, 1 extra, 1 changed",
        "    name  k     n",
        "  - bob   y     2",
        "  + bob   y     5",
        "                ^",
        "  - cyd   z     3",
        "  + dan   NULL  9",
    ]
    assert difference(["n"], [(1,), (1,)], [(1,)], ordered=False)[0].endswith("1 missing")
    assert difference(["n"], [(0.1 + 0.2,)], [(0.3,)], ordered=False) == []
    assert difference(["n"], [(1,), (2,)], [(2,), (1,)], ordered=False) == []
    assert difference(["n"], [(1,), (2,)], [(2,), (1,)], ordered=True)[0].endswith("2 changed")


@pytest.mark.parametrize(
    ("body", "code", "marked"),
    [
        ("GIVEN clicks VALUE (1) EXPECT VALUES (1)", "CLI-6180", "VALUE"),
        ("GIVEN clicks VALUES (1), EXPECT VALUES (1)", "CLI-6180", "EXPECT"),
        ("GIVEN clicks VALUES (1)", "CLI-6180", ""),
        ("GIVEN clicks NO ROWS EXPECT VALUES (1) LIMIT", "CLI-6180", "LIMIT"),
        ("GIVEN clicks VALUES (1 +) EXPECT VALUES (1)", "SQL-1001", None),
    ],
)
def test_what_cannot_be_read_has_a_caret(tmp_path: Path, body: str, code: str, marked: str | None) -> None:
    with pytest.raises(PenstockError) as raised:
        read_test_file(write(tmp_path, f"-- a comment\nTEST 'it'\n{body};"))
    error = raised.value
    assert error.code == code and error.line == 3 and error.span is not None
    assert marked is None or error.source.text[error.span.start : error.span.end].strip(";") == marked
    assert "job.test.sql" in error.render() and "^" in error.render()


@pytest.mark.parametrize(
    ("body", "code", "marked"),
    [
        ("GIVEN klicks NO ROWS EXPECT VALUES (1)", "SQL-1041", "klicks"),
        ("GIVEN clicks (nam) VALUES ('a') EXPECT VALUES (1)", "SQL-1042", "nam"),
        ("GIVEN clicks (name) VALUES ('a', 2) EXPECT VALUES (1)", "SQL-1090", "VALUES ('a', 2)"),
        ("GIVEN clicks (ts) VALUES ('noon') EXPECT VALUES (1)", None, "VALUES ('noon')"),
        ("GIVEN clicks NO ROWS GIVEN clicks NO ROWS EXPECT VALUES (1)", "CLI-6181", "clicks"),
        ("GIVEN people VALUES ('a', 'b') WATERMARK '2026-01-01' EXPECT VALUES (1)", "CLI-6181", "people"),
        (f"{CLICKS} EXPECT towns NO ROWS", "CLI-6182", "towns"),
        (f"{CLICKS} EXPECT people NO ROWS", "CLI-6181", "people"),
        (f"{CLICKS} EXPECT (SELECT nam FROM clicks) NO ROWS", "SQL-1042", "nam"),
    ],
)
def test_what_a_test_gives_and_expects_is_checked(
    tmp_path: Path, body: str, code: str | None, marked: str
) -> None:
    error = run_one(tmp_path, body).error
    assert error is not None and error.span is not None and error.source is not None
    assert code is None or error.code == code
    assert error.source.text[error.span.start : error.span.end] == marked
    assert error.source.file is not None and error.source.file.endswith("job.test.sql")


def test_a_statement_that_changes_rows_is_not_run(tmp_path: Path) -> None:
    file = read_test_file(
        write(tmp_path, f"TEST 'it' {CLICKS} EXPECT VALUES (2);", f"{SCRIPT}DELETE FROM people;")
    )
    error = run_test(file, file.tests[0]).error
    assert error is not None and error.code == "SQL-1601" and "DELETE is not run" in error.message
    assert error.source.text[error.span.start : error.span.end] == "people"


def test_exit_codes_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = write(tmp_path, "TEST 'good' EXPECT (VALUES (1)) NO ROWS;", "")
    assert main(["test", name]) == 1 and "CLI-6180" in capsys.readouterr().err
    name = write(
        tmp_path,
        "TEST 'good & <one>' EXPECT (SELECT 1 AS n) VALUES (1); TEST 'bad' EXPECT (SELECT 1 AS n) VALUES (2);",
    )
    assert main(["test", str(tmp_path), "-k", "good"]) == 0
    assert "1 passed, 1 deselected" in capsys.readouterr().out
    assert main(["test", str(tmp_path), "--junit", str(tmp_path / "o" / "r.xml")]) == 7
    assert "FAIL" in capsys.readouterr().out
    suite = ElementTree.parse(tmp_path / "o" / "r.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite[0].get("name")) == ("2", "1", "good & <one>")
    assert main(["test", str(tmp_path), "-k", "nothing"]) == 2
    (tmp_path / "empty").mkdir()
    assert main(["test", str(tmp_path / "empty")]) == 2
    assert main(["test", str(tmp_path / "missing.test.sql")]) == 1


def test_the_tests_of_our_own_queries_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["test", "queries"]) == 0


def test_pytest_collects_the_same_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(
        tmp_path,
        "TEST 'good' EXPECT (SELECT 1 AS n) VALUES (1); TEST 'bad' EXPECT (SELECT 1 AS n) VALUES (2);",
    )
    (tmp_path / "broken_test.sql").write_text("TEST 'broken' EXPEKT;")
    # an environment that was installed before the entry point was there
    installed = any(each.name == "penstock" for each in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "penstock.repl.sql_tests.pytest_plugin"]
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", "/dev/null"]
    code = pytest.main([*plugin, *options, "--continue-on-collection-errors", str(tmp_path)])
    out = capfd.readouterr().out
    assert code == 1 and "1 failed, 1 passed, 1 error" in out
    assert "expected 1 row, actual 1 row" in out and "CLI-6180" in out and "runner.py" not in out
