"""``python -m bench.start.tutorial_recording``: types docs/TUTORIAL.md on a terminal, checks what each step answers, and
writes what was seen to docs/tutorial.cast (asciinema plays it). ``--screens``: prints the text of each step too.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.harness.page_files import page_steps, write_page_files
from tests.harness.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "TUTORIAL.md"
_KEY_S = 0.02
_IDLE_S = 1.5
# a job needs its time until it has written rows: the command that reads them is typed again
_AGAIN_S = 2.0
_TRIES = 60


def main() -> None:
    """Record the whole page."""
    parser = argparse.ArgumentParser(prog="python -m bench.start.tutorial_recording", description=__doc__)
    parser.add_argument("--screens", action="store_true", help="print what each step wrote")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-tutorial-") as folder:
        directory = Path(folder)
        write_page_files(PAGE, directory)
        terminal = open_terminal(directory, ["bash", "--norc", "--noprofile", "-i"], "$ ")
        try:
            for prompt, typed, expected in page_steps(PAGE):
                seen = follow(terminal, prompt, typed, expected)
                if arguments.screens:
                    print(f"--- {typed}\n{seen}")
        finally:
            terminal.close()
    terminal.write_recording(ROOT / "docs" / "tutorial.cast", "penstock: the tutorial", _IDLE_S)


def open_terminal(directory: Path, command: list[str], prompt: str, pause_s: float = _KEY_S) -> Terminal:
    """Start a program on a terminal and return it at its prompt. ``penstock`` is the command beside this
    Python, without Spark.
    """
    configuration = directory / "penstock.toml"
    configuration.write_text('[settings]\n"bounded.backend" = "duckdb"\n', encoding="utf-8")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(directory),
        "LANG": "C.UTF-8",
        "PS1": "$ ",
        "PENSTOCK_CONFIG": str(configuration),
    }
    terminal = Terminal(command, directory, environment, pause_s)
    terminal.await_text(prompt)
    return terminal


def follow(terminal: Terminal, prompt: str, typed: str, expected: str) -> str:
    """Do a step of the page and return what it wrote. It is done again until it answers as expected."""
    if prompt == "$" and terminal.program == "penstock":
        terminal.paste("\\q")
        terminal.type("\n")
        terminal.await_text("$ ")
        terminal.program = "bash"
    lines = _words(expected)
    for _ in range(_TRIES):
        if prompt == "$":
            terminal.type(typed)
        else:
            terminal.paste(typed)
        terminal.settle()
        terminal.forget()
        terminal.type("\n")
        if typed == "penstock":
            terminal.program = "penstock"
        terminal.await_text(_answered(terminal, typed))
        seen = terminal.settle()
        if all(line in " ".join(_words(seen)) for line in lines):
            return seen
        terminal.wait(_AGAIN_S)
    raise SystemExit(f"{typed}\nanswers\n{seen}\nnot\n{expected}")


def _answered(terminal: Terminal, typed: str) -> str:
    """What is on the screen when a step is over."""
    if terminal.program == "bash":
        return "$ "
    return "created" if typed.startswith("CREATE ") else "penstock>" if typed == "penstock" else " in "


def _words(text: str) -> Sequence[str]:
    """The lines of a text with single blanks, without times: the width of a column may differ."""
    return [" ".join(line.split(" (")[0].split()) for line in text.split("\n") if "passed in" not in line]


if __name__ == "__main__":
    main()
