import io
from contextlib import closing
from types import SimpleNamespace

import pytest

from penstock.catalog.errors import PenstockError, SourceText
from penstock.client.session import Session
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
        context = SimpleNamespace(session=session, printer=Printer(out, Messages(io.StringIO()), Style()))

        def command(text):
            out.seek(0)
            out.truncate()
            if text.startswith("\\"):
                run_command(context, MetaCommand(text.rstrip(";"), SourceText(text)))
            else:
                for statement in session.parse(text):
                    context.printer.show(session.run(statement))
            return out.getvalue()

        yield command


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
