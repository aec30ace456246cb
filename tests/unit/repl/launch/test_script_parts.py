"""Where meta commands begin and end in a text, and in which order its parts run."""

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.statements.dispatch import parse_statements
from penstock.repl.launch.script_parts import (
    MetaCommand,
    meta_commands,
    script_parts,
    without_commands,
)


def parts(text):
    return [
        (part.text, part.statement and part.statement.text) if isinstance(part, MetaCommand) else part.text
        for part in script_parts(parse_statements, text)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\d", [("\\d", None)]),
        ("\\dt;\nSELECT 1;", [("\\dt", None), "SELECT 1"]),
        ("SELECT 1; \\timing on\nSELECT 2", ["SELECT 1", ("\\timing on", None), "SELECT 2"]),
        # a command that runs the statement before it
        (
            "SELECT 1; SELECT 2 \\g it's.txt\n\\watch 1",
            ["SELECT 1", ("\\g it's.txt", "SELECT 2"), ("\\watch 1", None)],
        ),
        ("SELECT 1;\n\\g", ["SELECT 1", ("\\g", None)]),
        # within an unfinished statement: it runs first, as in psql
        ("SELECT\n\\x\n1;", [("\\x", None), "SELECT\n  \n1"]),
        # in strings, names and comments a backslash is a letter
        ("SELECT '\\d', \"\\d\" -- \\d\n/* \\d */;", ["SELECT '\\d', \"\\d\""]),
        ("-- only a comment\n\\q", [("\\q", None)]),
    ],
)
def test_parts_of_a_text(text, expected):
    assert parts(text) == expected


@pytest.mark.parametrize("text", ["SELECT 1 \\ 2", "\\", "SELECT 'open\n\\d"])
def test_a_backslash_before_no_letter_is_no_command(text):
    assert meta_commands(text) == []
    with pytest.raises(PenstockError, match=r"unexpected|never ends|no statement begins"):
        parts(text)


def test_errors_show_the_line_as_it_was_written():
    with pytest.raises(PenstockError) as caught:
        parts("\\x\nSELEC 1 \\g out")
    assert (caught.value.line, caught.value.column) == (2, 1)
    assert "SELEC 1 \\g out" in caught.value.render()


def test_blank_commands_move_nothing():
    text = "\\i a.sql\nSELECT 1\n\\g\nSELECT 2"
    assert without_commands(text).splitlines() == ["        ", "SELECT 1", "; ", "SELECT 2"]
    assert without_commands("SELECT 1") == "SELECT 1"
