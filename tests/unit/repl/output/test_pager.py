"""Which results a pager shows: bounded ones on a terminal that do not fit the screen."""

import io
import shlex

import pyarrow as pa
import pytest

from penstock.client.results.result import rows_result, verbatim_result
from penstock.repl.output.messages import Messages
from penstock.repl.output.pager import Pager
from penstock.repl.output.printer import Printer, Style


@pytest.fixture
def paged(tmp_path):
    """A pager that writes what it is given into a file, after the value of LESS."""
    file = tmp_path / "paged.txt"
    command = f"sh -c {shlex.quote(f'echo $LESS > {file}; cat >> {file}')}"
    return Pager({"PAGER": command, "PATH": "/usr/bin:/bin"}, lambda: 10), file


def printed(pager, rows, **style):
    out = io.StringIO()
    printer = Printer(out, Messages(io.StringIO()), Style(terminal=True, pager=True, **style))
    printer.pager = pager
    printer.show(rows_result(pa.table({"n": list(range(rows))})))
    return out.getvalue()


def test_a_long_result_goes_through_the_pager_and_a_short_one_does_not(paged):
    pager, file = paged
    assert "  4\n" in printed(pager, 5)
    assert not file.exists()
    assert printed(pager, 20) == ""
    assert file.read_text().startswith("-SRFX\n")
    assert file.read_text().endswith(" 19\n")


def test_lines_of_text_are_paged_too(paged):
    pager, file = paged
    out = io.StringIO()
    printer = Printer(out, Messages(io.StringIO()), Style(terminal=True, pager=True))
    printer.pager = pager
    printer.show(verbatim_result("plan", ["line"] * 20))
    assert (out.getvalue(), file.read_text().count("line")) == ("", 20)


@pytest.mark.parametrize("style", [{"terminal": False}, {"pager": False}])
def test_no_pages_where_nobody_turns_them(paged, style):
    pager, file = paged
    out = io.StringIO()
    printer = Printer(out, Messages(io.StringIO()), Style(**{"terminal": True, "pager": True, **style}))
    printer.pager = pager
    printer.show(rows_result(pa.table({"n": list(range(20))})))
    assert out.getvalue().count("\n") > 20
    assert not file.exists()


@pytest.mark.parametrize("command", ["", "  ", "no-such-program-anywhere"])
def test_without_a_pager_the_rows_are_printed(command):
    assert " 19\n" in printed(Pager({"PAGER": command}, lambda: 10), 20)


def test_a_pager_that_is_left_early_ends_nothing():
    assert printed(Pager({"PAGER": "true", "PATH": "/usr/bin:/bin"}, lambda: 10), 50_000) == ""


def test_the_users_own_options_of_less_stay(paged, tmp_path):
    file = tmp_path / "own.txt"
    environ = {"PAGER": f"sh -c 'echo $LESS > {file}'", "LESS": "-N", "PATH": "/usr/bin:/bin"}
    assert Pager(environ, lambda: 10).show("line\n" * 20)
    assert file.read_text() == "-N\n"
