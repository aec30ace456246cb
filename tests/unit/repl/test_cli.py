"""The command line as a process through pipes: stdout is data, stderr is everything else, the exit code
says how it went.
"""

import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import pyarrow as pa
import pytest

from penstock.engine.operators.source.source import SourceOperator
from penstock.repl.cli import main
from tests.harness.patience import PATIENCE_S, await_that

COUNTER = (
    "CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100000', 'fields.a.kind' = 'sequence', "
    "'fields.a.start' = '1', 'fields.a.end' = '9');"
)
ENDLESS = "CREATE TEMPORARY TABLE e (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '500', 'fields.a.min' = '0', 'fields.a.max' = '9');"
COMMAND = [sys.executable, "-m", "penstock.repl.cli"]
QUIET = {
    **os.environ,
    "NO_COLOR": "1",
    "PENSTOCK_CONFIG": "/nonexistent",
    "PENSTOCK_HISTORY": "/nonexistent/history",
}


@dataclass
class Done:
    returncode: int
    bytes: bytes
    stderr: str

    @property
    def stdout(self):
        return self.bytes.decode()


def process(*words, stdin=""):
    done = subprocess.run(
        [*COMMAND, *words],
        input=stdin.encode(),
        capture_output=True,
        timeout=PATIENCE_S,
        env=QUIET,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr.decode())


def penstock(*words, stdin=""):
    """The same without a process of its own, which is quicker."""
    out, err, source = (
        io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", write_through=True)
        for text in (b"", b"", stdin.encode())
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in (("stdout", out), ("stderr", err), ("stdin", source)):
            patch.setattr(sys, name, stream)
        for name, value in QUIET.items():
            patch.setenv(name, value)
        try:
            code = main(words)
        except SystemExit as left:
            code = left.code
        out.flush()
        return Done(code, out.buffer.getvalue(), err.buffer.getvalue().decode())


def test_a_statement_in_a_process_of_its_own():
    done = process("-c", "SELECT 1 AS one, 'x' AS s, CAST(NULL AS INT) AS n")
    assert done.returncode == 0
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["one", "|", "s", "|", "n"],
        ["INT", "|", "STRING", "|", "INT"],
        ["-----+--------+------"],
        ["1", "|", "x", "|", "NULL"],
    ]
    assert done.stderr == ""


def test_statements_from_a_pipe_and_from_a_file(tmp_path):
    assert penstock("--csv", stdin="SELECT 1 AS a;\nSELECT 2 AS a;").stdout == "a\n1\na\n2\n"
    path = tmp_path / "a.sql"
    path.write_text("\ufeffSELECT 'é' AS a;\r\n", encoding="utf-8")
    assert penstock("-f", str(path), "--csv").stdout == "a\né\n"
    assert penstock("-i", str(path), "-c", "SELECT 2 AS b", "--csv").stdout == "a\né\nb\n2\n"


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("csv", "a,b\n1,\n2,x\n"),
        ("tsv", "a\tb\n1\t\\N\n2\tx\n"),
        ("jsonl", '{"a": 1, "b": null}\n{"a": 2, "b": "x"}\n'),
        ("json", '[\n{"a": 1, "b": null},\n{"a": 2, "b": "x"}\n]\n'),
        ("markdown", "| a | b |\n|---:|---|\n| 1 | NULL |\n| 2 | x |\n"),
    ],
)
def test_formats(flag, expected):
    assert (
        penstock("-c", "SELECT * FROM (VALUES (1, NULL), (2, 'x')) AS v (a, b)", "--format", flag).stdout
        == expected
    )


def test_arrow_format():
    done = penstock("-c", "SELECT 1 AS a", "--format", "arrow")
    assert pa.ipc.open_stream(io.BytesIO(done.bytes)).read_all().to_pydict() == {"a": [1]}


def test_a_changing_result_has_ops_in_machine_formats_and_is_folded_in_tables():
    query = COUNTER + "SELECT a % 2 AS k, COUNT(*) AS n FROM t GROUP BY a % 2"
    lines = penstock("-c", query, "--csv").stdout.splitlines()
    assert lines[0] == "op,k,n"
    assert {line.split(",")[0] for line in lines[1:]} <= {"+I", "-U", "+U"}
    assert "+U,1,5" in lines or "+I,1,5" in lines
    table = penstock("-c", query).stdout.splitlines()
    assert [line.split() for line in table[3:]] == [["0", "|", "4"], ["1", "|", "5"]]
    assert penstock("-c", query + " ORDER BY k DESC", "--csv").stdout == "k,n\n1,5\n0,4\n"
    changes = penstock("-c", "SET 'result-mode' = 'changelog'", "-c", query).stdout
    assert changes.split()[0] == "op"
    assert penstock("-c", "SET 'result-mode' = 'table'", "-c", query, "--csv").stdout == "k,n\n0,4\n1,5\n"


def test_errors_have_a_place_and_stop_the_script(tmp_path):
    path = tmp_path / "a.sql"
    path.write_text("SELECT 1 AS a;\nSELECT\n  nope;\nSELECT 3 AS c;\n")
    done = penstock("-f", str(path), "--csv")
    assert done.returncode == 1
    assert done.stdout == "a\n1\n"
    assert done.stderr.startswith(f"{path}:3:3: error[SQL-1042]")
    assert "Traceback" not in done.stderr


def test_json_errors():
    done = penstock("-c", "SELECT nope", "--json-errors")
    error = json.loads(done.stderr)
    assert (done.returncode, error["code"], error["line"], error["column"], error["sqlstate"]) == (
        1,
        "SQL-1042",
        1,
        8,
        "42703",
    )


def test_check_prints_every_error_and_runs_nothing(tmp_path):
    path = tmp_path / "a.sql"
    sink = f"CREATE TABLE o (a INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/o', 'format' = 'csv');"
    path.write_text(
        f"{COUNTER}\n{sink}\nSELECT nope FROM t;\nSELEC 1;\nINSERT INTO o SELECT a, a FROM t;\nINSERT INTO o SELECT a FROM t;\n"
    )
    done = penstock("run", "--check", str(path))
    assert done.returncode == 1
    assert [line.split(":")[1] for line in done.stderr.splitlines() if "error[" in line] == ["3", "4", "5"]
    assert not (tmp_path / "o").exists()
    path.write_text(f"{COUNTER}\nSELECT a FROM t;")
    done = penstock("run", "--check", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    assert "no errors" in done.stderr


def test_run_waits_for_jobs_and_sums_them_up(tmp_path):
    path = tmp_path / "a.sql"
    sink = f"CREATE TABLE o (a INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/${{name}}', 'format' = 'csv');"
    path.write_text(
        f"{COUNTER}\n{sink}\nINSERT INTO o SELECT a FROM t;\nSELECT a FROM o WHERE a > 6 ORDER BY a;"
    )
    done = penstock(
        "run",
        str(path),
        "--var",
        "name=out",
        "--state",
        str(tmp_path / "state"),
        "--set",
        "bounded.backend=duckdb",
        "--csv",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a\n7\n8\n9\n"
    assert "9 rows in" in done.stderr
    assert "9 rows out" in done.stderr
    assert (tmp_path / "state" / "insert-into-o-1" / "CURRENT").exists()
    assert penstock("run", str(path)).returncode == 1


def test_run_explain(tmp_path):
    path = tmp_path / "a.sql"
    path.write_text(f"{COUNTER}\nSELECT COUNT(*) AS n FROM t;")
    done = penstock("run", "--explain", str(path))
    assert done.returncode == 0
    assert "== physical ==" in done.stdout


def test_a_failed_job_is_exit_code_5(tmp_path):
    path = tmp_path / "a.sql"
    sink = "CREATE TABLE o (a BIGINT) WITH ('connector' = 'blackhole');"
    path.write_text(f"{COUNTER}\n{sink}\nINSERT INTO o SELECT 10 DIV (a - 5) FROM t;")
    done = penstock("run", str(path), "--set", "restart-strategy.type=none")
    assert done.returncode == 5
    assert "error[RUN-" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["-f"], ["run"]])
def test_restarts_are_told_while_somebody_waits(tmp_path, words, monkeypatch):
    failures = [OSError(5, "Input/output error"), OSError(5, "Input/output error")]
    whole = SourceOperator.open

    def failing(source, context):
        if failures:
            raise failures.pop()
        whole(source, context)

    monkeypatch.setattr(SourceOperator, "open", failing)
    settings = "SET 'restart-strategy.delay' = '10 ms'; SET 'execution.runtime-mode' = 'streaming';"
    sink = "CREATE TEMPORARY TABLE n (a INT) WITH ('connector' = 'blackhole');"
    query = "SELECT a FROM t" if words == ["-f"] else "INSERT INTO n SELECT a FROM t"
    script = tmp_path / "failing.sql"
    script.write_text(f"{settings}\n{COUNTER}\n{sink}\n{query};")
    done = penstock(*words, str(script))
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if ": restarting (RUN-2900: " in line]
    assert len(told) == 2 and " from the beginning, in 0.0 s" in told[0]
    # between the two failures a job may run already, when the machine is slow
    assert done.stderr.count(": running: recovered in ") in (1, 2)


SINKS = "CREATE TABLE {0} (a INT) WITH ('connector' = 'filesystem', 'path' = '{1}/{0}', 'format' = 'csv');\n"


def rows_in(directory):
    return sum(
        len(file.read_text().splitlines()) - 1 for file in directory.iterdir() if file.suffix == ".csv"
    )


@pytest.mark.parametrize("way", ["-c", "-f", "pipe", "run"])
def test_an_insert_of_what_ends_is_finished_wherever_it_is_said(tmp_path, way):
    script = f"{COUNTER}\n{SINKS.format('o', tmp_path)}INSERT INTO o SELECT a FROM t;\nSELECT COUNT(*) AS n FROM o;\n"
    (tmp_path / "a.sql").write_text(script)
    words = ["--set", "bounded.backend=duckdb", "--csv"]
    match way:
        case "-c":
            done = penstock(
                *words, *[word for statement in script.split(";\n")[:-1] for word in ("-c", statement)]
            )
        case "pipe":
            done = penstock(*words, stdin=script)
        case "-f":
            done = penstock(*words, "-f", str(tmp_path / "a.sql"))
        case "run":
            done = penstock("run", *words, str(tmp_path / "a.sql"))
    assert (done.returncode, done.stdout) == (0, "n\n9\n"), done.stderr


def test_a_command_line_ends_when_all_its_jobs_have(tmp_path):
    script = f"SET 'table.dml-sync' = 'false';\n{COUNTER}\n{SINKS.format('o', tmp_path)}{SINKS.format('q', tmp_path)}"
    script += "INSERT INTO o SELECT a FROM t;\nINSERT INTO q SELECT a FROM t;\n"
    done = penstock(stdin=script)
    assert done.returncode == 0, done.stderr
    assert (rows_in(tmp_path / "o"), rows_in(tmp_path / "q")) == (9, 9)


@pytest.mark.parametrize("words", [["-f"], ["run"]])
def test_two_endless_inserts_run_side_by_side_until_they_are_stopped(tmp_path, words):
    path = tmp_path / "a.sql"
    path.write_text(
        f"SET 'execution.checkpointing.interval' = '50 ms';\n{ENDLESS}\n{COUNTER}\n{''.join(SINKS.format(name, tmp_path) for name in 'opq')}"
        "INSERT INTO o SELECT a FROM e;\nINSERT INTO p SELECT a FROM t;\nINSERT INTO q SELECT a FROM e;\n"
    )
    running = subprocess.Popen(
        [*COMMAND, *words, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUIET, text=True
    )
    await_that(
        lambda: all((tmp_path / name).is_dir() and rows_in(tmp_path / name) for name in "opq"),
        "rows of all three",
    )
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, errors
    assert errors.count("stopping with a checkpoint") == 2
    assert rows_in(tmp_path / "p") == 9
    for name in "oq":
        ends = [line for line in errors.splitlines() if f"insert-into-{name}-" in line and "rows out" in line]
        assert len(ends) == 1 and f"{rows_in(tmp_path / name):,} rows out" in ends[0]


def test_a_job_that_fails_beside_others_is_exit_code_5_when_all_have_ended(tmp_path):
    script = f"SET 'table.dml-sync' = 'false';\n{COUNTER}\n{SINKS.format('o', tmp_path)}{SINKS.format('q', tmp_path)}"
    script += "INSERT INTO o SELECT 10 DIV (a - 5) FROM t;\nINSERT INTO q SELECT a FROM t;\n"
    done = penstock(stdin=script)
    assert done.returncode == 5, done.stderr
    assert done.stderr.count("error[RUN-") == 1
    assert rows_in(tmp_path / "q") == 9, "the other goes on to its end"


def test_a_script_that_fails_stops_what_it_has_started(tmp_path):
    script = f"{ENDLESS}\n{SINKS.format('o', tmp_path)}INSERT INTO o SELECT a FROM e;\nSELECT nope FROM e;\n"
    done = penstock(stdin=script)
    assert done.returncode == 1
    assert (
        "warning: job insert-into-o-" in done.stderr and "was stopped before its sources ended" in done.stderr
    )


def test_a_time_limit_is_one_for_statements_and_jobs(tmp_path):
    done = penstock(
        "--timeout", "0.5", stdin=f"{ENDLESS}\n{SINKS.format('o', tmp_path)}INSERT INTO o SELECT a FROM e;\n"
    )
    assert done.returncode == 4
    assert "gave up after 0.5 s" in done.stderr


def test_timeout_is_exit_code_4():
    done = penstock("-c", ENDLESS + "SELECT a FROM e", "--timeout", "1.5", "--jsonl")
    assert done.returncode == 4
    assert "CLI-6130" in done.stderr
    for line in done.stdout.splitlines():
        assert "a" in json.loads(line)


def test_a_reader_that_goes_away_ends_an_endless_query_quietly():
    endless = subprocess.Popen(
        [*COMMAND, "--csv", "-c", ENDLESS + "SELECT a FROM e"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=QUIET,
    )
    assert endless.stdout.readline() == b"a\n"
    endless.stdout.close()
    assert endless.wait(PATIENCE_S) == 0
    assert b"Traceback" not in endless.stderr.read()
    endless.stderr.close()


def test_interrupted_query_is_exit_code_130():
    words = [*COMMAND, "--csv", "-c", ENDLESS + "SELECT a FROM e"]
    # a shell starts what runs behind it with Ctrl-C ignored, and who is started takes that over: so would the
    # tests' own children
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    endless = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUIET)
    signal.signal(signal.SIGINT, before)
    endless.stdout.readline()
    endless.send_signal(signal.SIGINT)
    _, errors = endless.communicate(timeout=PATIENCE_S)
    assert endless.returncode == 130
    assert b"Traceback" not in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_a_job_with_a_checkpoint(tmp_path, number):
    path = tmp_path / "a.sql"
    sink = f"CREATE TABLE o (a INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'csv');"
    path.write_text(f"{ENDLESS}\n{sink}\nINSERT INTO o SELECT a FROM e;\nSELECT 1 AS beside;")
    words = [*COMMAND, "run", str(path), "-v", "--csv", "--state", str(tmp_path / "state")]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUIET, text=True)
    for line in running.stderr:
        if line.endswith("checkpoint 1\n"):
            break
    running.send_signal(number)
    output, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, errors
    assert output == "beside\n1\n", "what follows an endless INSERT runs beside it"
    assert "stopping with a checkpoint" in errors
    rows = sum(
        len(file.read_text().splitlines()) - 1
        for file in (tmp_path / "out").iterdir()
        if file.suffix == ".csv"
    )
    assert f"{rows:,} rows out" in errors


def test_the_shell_through_pipes_goes_on_after_errors(tmp_path):
    keys = "SELECT nope;\n\\nothing\n\\timing off\n\\mode csv\nSELECT\n 1 AS a;\n\\x maybe\n\\o {0}/rows.csv\nSELECT 2 AS b;\n\\o\n\\q\nSELECT 3;\n"
    done = penstock("--interactive", stdin=keys.format(tmp_path))
    assert done.returncode == 0
    assert done.stdout == "a\n1\n"
    assert (tmp_path / "rows.csv").read_text() == "b\n2\n"
    for said in ("SQL-1042", "CLI-6140", "CLI-6141", "timing: off"):
        assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_shells_commands_answer():
    keys = (
        COUNTER
        + "\n\\timing off\n\\?\n\\h window\n\\d\n\\d t\n\\dt t%\n\\dv\n\\df count\n\\dc datagen\n\\dj\n"
    )
    keys += "\\set parallelism.default 2\n\\set parallelism\n\\t on\n\\pset null -\nSELECT CAST(NULL AS INT) AS z;\n\\errverbose\nhelp;\nexit\n"
    done = penstock("--interactive", stdin=keys)
    assert done.returncode == 0, done.stderr
    for said in (
        "list these commands",
        "TUMBLE",
        "datagen",
        "INT",
        "aggregate",
        "rows-per-second",
        "parallelism.default = 2",
        "\n   -\n",
    ):
        assert said in done.stdout, said
    assert "error" not in done.stderr.replace("there was no error", "")
    assert "Traceback" not in done.stderr
