import io
from contextlib import closing
from types import SimpleNamespace

import pytest

import penstock
from penstock.catalog.errors import PenstockError, SourceText
from penstock.catalog.functions.relation import FILE_TABLE_FUNCTIONS, WINDOW_TABLE_FUNCTIONS
from penstock.client.session import Session
from penstock.planner.logical.windows import WINDOW_FUNCTIONS
from penstock.planner.parser.file_parser import FILE_FUNCTIONS
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.meta_commands.dispatch import ACTIONS, run_command
from penstock.repl.meta_commands.registry import ALIASES, COMMANDS
from penstock.repl.output.messages import Messages
from penstock.repl.output.printer import Printer, Style


@pytest.fixture
def run():
    """Return a function that runs a command and returns what it prints."""
    out = io.StringIO()
    with closing(Session({"bounded.backend": "duckdb"})) as session:
        context = SimpleNamespace(
            session=session, printer=Printer(out, Messages(io.StringIO()), Style()), note=lambda text: None
        )

        def command(text):
            out.seek(0)
            out.truncate()
            if text.startswith("\\"):
                run_command(context, MetaCommand(text.rstrip(";"), SourceText(text)))
            else:
                for statement in session.parse(text):
                    context.printer.show(session.run(statement))
            return out.getvalue()

        command.session, command.context = session, context
        yield command


class StoppedAt(io.StringIO):
    """Rows up to a text, at which Ctrl-C comes. At the first text something is done."""

    def __init__(self, first, then, last):
        super().__init__()
        self._first, self._then, self._last = first, then, last

    def write(self, text):
        count = super().write(text)
        if self._first in text:
            self._then()
        if self._last in text:
            raise KeyboardInterrupt
        return count


def test_a_name_with_its_database_is_described(run):
    run("CREATE DATABASE shop; CREATE TABLE shop.`order` (id BIGINT) WITH ('connector' = 'datagen')")
    for name in ("shop.order", "`shop`.`order`", 'shop."order"', "shop.order;"):
        assert "BIGINT" in run(f"\\d {name}")


def test_a_bar_is_part_of_a_name(run):
    run("CREATE TABLE `a|c` (id BIGINT) WITH ('connector' = 'datagen')")
    assert "BIGINT" in run("\\d `a|c`")


def test_a_file_is_described(run, tmp_path):
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n")
    assert "name" in run(f"\\d '{tmp_path}/orders.csv'")


def test_a_bar_in_a_job_id_is_no_syntax_error(run):
    with pytest.raises(PenstockError, match=r"no job 'a\|b'"):
        run("\\dj a|b")


def test_dj_lists_jobs_that_run_and_dj_plus_all(run):
    run("CREATE TABLE few (a BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')")
    run("CREATE TABLE out (a BIGINT) WITH ('connector' = 'blackhole')")
    run("SET 'pipeline.name' = 'brief'")
    run("SET 'table.dml-sync' = 'true'")
    run("INSERT INTO out SELECT a FROM few")
    assert "FINISHED" in run("\\dj+")
    assert "FINISHED" not in run("\\dj")
    run("CREATE TABLE endless (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1')")
    run("SET 'table.dml-sync' = 'false'")
    run("INSERT INTO out SELECT a FROM endless")
    running = run("\\dj")
    assert len(running.splitlines()) + 1 == len(run("\\dj+").splitlines())


def test_every_command_that_is_listed_has_an_action():
    assert {*ACTIONS, r"\q"} == {command.name for command in COMMANDS}
    assert set(ALIASES.values()) <= {command.name for command in COMMANDS}


def test_functions_are_listed_with_signature_and_sentence(run):
    assert run("\\df tumble").startswith(
        "TUMBLE(TABLE t, DESCRIPTOR(ts), size[, offset])  (window table)\n    Each row"
    )
    assert "(file)" in run("\\df read_parquet")
    # by an alias, too
    assert run("\\df ucase") == "upper(s)  (scalar, also ucase)\n    The text in capitals.\n"
    assert run("\\df no_such_function") == "\n"
    everything = run("\\df")
    assert everything.count("\n") > 600
    assert "sum0" not in everything


def test_every_function_of_from_is_listed():
    assert {function.name.upper() for function in WINDOW_TABLE_FUNCTIONS} == set(WINDOW_FUNCTIONS)
    assert {function.name.upper() for function in FILE_TABLE_FUNCTIONS} <= set(FILE_FUNCTIONS)
    for function in WINDOW_TABLE_FUNCTIONS:
        assert function.usage.upper().startswith(function.name.upper())


def test_python_functions_are_listed_with_their_types(run):
    @penstock.udf(["BIGINT"], "STRING")
    def name_of(number):
        """The name of a number."""

    run.session.create_function(name_of)
    assert run("\\df name_of") == "name_of(BIGINT) → STRING  (python scalar)\n    The name of a number.\n"


def test_all_that_is_known_of_a_table(run, tmp_path):
    (tmp_path / "a.csv").write_text("id,ts\n1,2020-01-01 00:00:00\n")
    run(
        "CREATE TABLE t (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED) "
        f"COMMENT 'what came' WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/a.csv')"
    )
    facts = run("\\d+ t")
    for fact in (
        "what came",
        "filesystem",
        "ts: ",
        "primary key",
        "bounded",
        "1 file, 28 bytes",
        "option path",
    ):
        assert fact in facts, fact
    assert "id" in run(f"\\d+ '{tmp_path}/a.csv'")
    run("CREATE VIEW v AS SELECT 1 AS a")
    assert "SELECT 1 AS a" in run("\\d+ v")
    run(
        "CREATE TABLE s (a INT) WITH ('connector' = 'postgres', 'url' = 'postgresql://u:hidden@h/d', 'table-name' = 'x')"
    )
    assert "hidden" not in run("\\d+ s")
    run(
        "CREATE TABLE gone (a INT) WITH ('connector' = 'filesystem', 'path' = '/nonexistent/x', 'format' = 'csv')"
    )
    assert "0 files, 0 bytes" in run("\\d+ gone")


def test_a_jobs_output_is_followed_until_it_is_stopped(run, tmp_path):
    run(
        "CREATE TABLE few (a BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '30', 'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '30')"
    )
    run(
        f"CREATE TABLE out (a BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json')"
    )
    run("SET 'table.dml-sync' = 'true'; INSERT INTO out SELECT a FROM few")
    (job,) = run.session.jobs()
    run.context.printer.style.format = "csv"
    # the newest rows that are there; then another job writes more, until Ctrl-C
    more = "INSERT INTO out SELECT a + 100 FROM few WHERE a < 3"
    stop = run.context.printer.out = StoppedAt("30\n", lambda: run.session.execute(more), "102\n")
    with pytest.raises(KeyboardInterrupt):
        run(f"\\tail {job.job_id} 2")
    assert stop.getvalue().split() == ["a", "29", "30", "101", "102"]
    with pytest.raises(PenstockError, match="does not exist"):
        run("\\tail no_such_job")
