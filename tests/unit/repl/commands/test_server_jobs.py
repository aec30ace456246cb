"""The command line against a server: statements, scripts, detached jobs, and commands about one job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.client.results.result import rows_result
from penstock.repl.cli import main
from penstock.repl.commands.server_jobs import _events, statement_of
from penstock.repl.launch.job_arguments import job_command_parser
from penstock.repl.launch.parser import EXIT_CONNECTION, EXIT_OK, EXIT_QUERY, EXIT_TIMEOUT, EXIT_USAGE
from tests.harness.flight_server import flight_listener

ENDLESS = "CREATE TABLE endless (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '200')"
SINK = "CREATE TABLE sink (a BIGINT) WITH ('connector' = 'blackhole')"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    with flight_listener() as listener:
        yield listener.address


def test_statements_of_the_command_line_run_at_the_server(
    host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["-H", host, "--csv", "-c", "SELECT 1 AS a, 'x' AS b"]) == EXIT_OK
    assert capsys.readouterr().out == "a,b\n1,x\n"
    assert main([f"penstock://{host}", "-c", "SELECT nope FROM (VALUES (1)) AS t (a)"]) == EXIT_QUERY
    assert "error[SQL-1042]" in (found := capsys.readouterr().err) and "^^^^" in found
    monkeypatch.setenv("PENSTOCK_URL", f"penstock://{host}")
    script = "\\conninfo\nCREATE VIEW v AS SELECT 1 AS one;\n\\d v\n\\d+ v\n\\df ABS\n\\set parallelism.default 2\nSET 'parallelism.default';"
    Path("script.sql").write_text(script)
    assert main(["-f", "script.sql", "--format", "csv"]) == EXIT_OK, capsys.readouterr()
    out = capsys.readouterr().out
    assert f"statements run at {host}" in out
    assert "parallelism.default,2" in out and "CREATE VIEW `v`" in out and "ABS" in out.upper()
    assert main(["-c", "SELECT 2 AS a", "--csv"]) == EXIT_OK
    assert capsys.readouterr().out == "a\n2\n"


def test_detached_jobs_are_listed_stopped_and_explained(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with flight_listener() as listener:
        # an engine for each session: the commands are about the job of one connection
        host = listener.address
        Path("job.sql").write_text(f"{ENDLESS};\n{SINK};\nINSERT INTO sink SELECT a FROM endless;\nSELECT 1;")
        session = listener.clients
        assert main(["run", "job.sql", "--detach", "-H", host]) == EXIT_OK
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith("insert-into-sink")
        assert not session.all()
        assert main(["jobs", "-H", host, "--csv"]) == EXIT_OK
        assert capsys.readouterr().out.startswith("job,name,state")
    for words in (["run", "job.sql", "--detach"], ["jobs"], ["stop", "x"], ["explain", "x"]):
        assert main(words) == EXIT_USAGE
        assert "CLI-6245" in capsys.readouterr().err
    assert main(["run", "job.sql", "-H", host, "--state", "out"]) == EXIT_USAGE
    assert "--state is of an engine in this process" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["stop"], ["cancel"], ["logs"], ["explain"], ["rescale", "2"], ["savepoint"], ["savepoint", "--stop"]],
)
def test_a_job_that_is_not_there_has_a_hint(
    host: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command, *rest = words
    assert main([command, "nothing", *rest, "-H", host, "--json-errors"]) == EXIT_QUERY
    assert json.loads(capsys.readouterr().err)["code"] == "CLI-6030"


def test_a_savepoint_ends_its_job_only_when_told_to(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    job = ["nothing", "--to", "it's"]
    parser = job_command_parser("savepoint", lambda _: None)
    assert statement_of("savepoint", parser.parse_args(job)) == "CREATE SAVEPOINT OF JOB 'nothing' TO 'it''s'"
    stopped = "STOP JOB 'nothing' WITH SAVEPOINT 'it''s' WITH DRAIN"
    assert statement_of("savepoint", parser.parse_args([*job, "--stop", "--drain"])) == stopped
    # sources that have ended cannot go on
    assert main(["savepoint", "nothing", "--drain", "-H", host]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert "CLI-6245" in said and "penstock savepoint nothing --stop --drain" in said


def test_logs_of_a_job_without_events_say_so() -> None:
    facts = pa.table(
        {"fact": ["job", "event 2026-01-01 00:00:00"], "value": ["j", "RESTARTING for a reason"]}
    )
    assert _events(rows_result(facts)).final_rows().to_pylist() == [
        {"time": "2026-01-01 00:00:00", "event": "RESTARTING for a reason"}
    ]
    without = _events(rows_result(facts.slice(0, 1)))
    assert without.note == "the job has had no failure, restart or warning"


def test_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["-c", "SELECT 1"], ["jobs"], ["run", "x.sql"], ["logs", "x"]):
        assert main([*words, "-H", "127.0.0.1:1"]) == EXIT_CONNECTION
        assert "CLI-6241" in capsys.readouterr().err


def test_a_timeout_ends_what_is_waited_for_and_no_other_job(capsys: pytest.CaptureFixture[str]) -> None:
    with flight_listener() as listener:
        script = f"{ENDLESS}; {SINK}; SET 'table.dml-sync' = 'true'; INSERT INTO sink SELECT a FROM endless"
        assert main(["-c", script, "-H", listener.address, "--timeout", "1"]) == EXIT_TIMEOUT
    assert "gave up after 1 s" in capsys.readouterr().err
