"""The page of the shell is up to date, and names all commands and options."""

from pathlib import Path

from penstock.repl.launch.arguments import COMMANDS as SUBCOMMANDS
from penstock.repl.launch.arguments import PARSERS, shell_parser
from penstock.repl.meta_commands.reference import shell_page, write_page
from penstock.repl.meta_commands.registry import COMMANDS

DOCS = Path(__file__).resolve().parents[4] / "docs"


def test_the_page_is_up_to_date(tmp_path):
    write_page(tmp_path)
    assert (tmp_path / "SHELL.md").read_text() == (DOCS / "SHELL.md").read_text(), (
        "run python -m penstock.repl.meta_commands.reference docs"
    )


def test_every_meta_command_and_every_option_is_named():
    page = shell_page()
    for command in COMMANDS:
        assert f"| `{command.name} " in page or f"| `{command.name}` " in page
    assert set(PARSERS) == set(SUBCOMMANDS)
    for parser in (shell_parser(), *(make() for make in PARSERS.values())):
        section = page.split(f"### `{parser.prog}`\n")[1].split("\n### ")[0]
        for flag in ("--set", "--json-errors", "--state", "-c", "-k"):
            known = any(flag in action.option_strings for action in parser._actions)
            assert (f"`{flag} " in section or f"`{flag}`" in section) is known, (parser.prog, flag)
