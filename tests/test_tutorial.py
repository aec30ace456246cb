"""docs/TUTORIAL.md, done as its reader does it: its files are written, its commands and statements are run
in their order, and each answers what stands below it.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import penstock
from bench.start.tutorial_recording import follow, open_terminal
from penstock.repl.cli import main
from penstock.repl.output.cell_text import text_column
from tests.harness.page_files import page_steps, write_page_files
from tests.harness.patience import PATIENCE_S, await_that

PAGE = Path(__file__).resolve().parent.parent / "docs" / "TUTORIAL.md"
_TIMES = re.compile(r"\d+(\.\d+)? m?s\b")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PENSTOCK_CONFIG", str(tmp_path / "none"))
    write_page_files(PAGE, tmp_path)
    return tmp_path


class Reader:
    """Who follows the page: one shell, and at most one job at a time."""

    def __init__(self) -> None:
        self.shell: penstock.Connection | None = None
        self.job: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End what still runs."""
        self._leave_shell()
        if self.job is not None and self.job.poll() is None:
            self.job.kill()
            self.job.wait()

    def follow(self, prompt: str, typed: str, expected: str) -> None:
        """Do one step. What reads is done again until it answers as expected: a job needs its time."""
        if prompt == "penstock>":
            _await_answer(lambda: self._answer(typed.rstrip(";")), expected)
            return
        self._leave_shell()
        if typed == "penstock":
            self.shell = penstock.connect(settings={"bounded.backend": "duckdb"})
        elif typed.endswith(" &"):
            words, log = typed.removesuffix(" &").split(" 2> ")
            command = [sys.executable, "-m", "penstock.repl.cli", *shlex.split(words)[1:]]
            with Path(log).open("wb") as file:
                self.job = subprocess.Popen(command, stderr=file)
        elif typed.startswith("kill "):
            self._kill(signal.SIGKILL if "-9" in typed else signal.SIGINT)
        elif typed.startswith("penstock "):
            _await_answer(lambda: printed(shlex.split(typed)[1:]), expected)
        else:
            subprocess.run(shlex.split(typed), check=True)

    def _answer(self, statement: str) -> str:
        assert self.shell is not None
        cursor = self.shell.execute(statement)
        if cursor.description is None:
            return ""
        table = cursor.fetch_arrow_table()
        columns = [text_column(column.combine_chunks(), "UTC").to_pylist() for column in table.columns]
        return "\n".join(" | ".join(row) for row in zip(*columns, strict=True))

    def _leave_shell(self) -> None:
        if self.shell is not None:
            self.shell.close()
            self.shell = None

    def _kill(self, number: signal.Signals) -> None:
        assert self.job is not None
        self.job.send_signal(number)
        assert self.job.wait(PATIENCE_S) == (-number if number is signal.SIGKILL else 130)


@pytest.fixture
def reader() -> Iterator[Reader]:
    reader = Reader()
    yield reader
    reader.close()


def printed(words: list[str]) -> str:
    """What a command prints to stdout, without a process of its own. It must succeed, but for what reads
    files that are not there yet.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in "12")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = main(words)
    notes = err.buffer.getvalue().decode()
    assert code == 0 or "DAT-4120" in notes or "DAT-4101" in notes, notes
    return out.buffer.getvalue().decode()


def _await_answer(answer: Callable[[], str], expected: str) -> None:
    last = ""

    def answered() -> bool:
        nonlocal last
        last = answer()
        return cells(expected) == [] or cells(last)[-len(cells(expected)) :] == cells(expected)

    await_that(answered, lambda: f"{last}\nis not\n{expected}", each_s=1.0)


def cells(text: str) -> list[list[str]]:
    """The rows of a printed table without its header, times and the widths of its columns."""
    rows = text.rsplit("-+-", maxsplit=1)[-1].split("\n")[1:] if "-+-" in text else text.split("\n")
    return [[cell.strip() for cell in _TIMES.sub("", row).split("|")] for row in rows if row]


def test_every_step_answers_as_the_page_says(directory: Path, reader: Reader) -> None:
    steps = page_steps(PAGE)
    for prompt, typed, expected in steps:
        reader.follow(prompt, typed, expected)
    assert len(steps) == 18


def test_the_statements_are_typed_on_a_terminal(directory: Path) -> None:
    """As ``python -m bench.start.tutorial_recording`` does with the whole page."""
    (directory / "inbox").mkdir()
    (directory / "orders.csv").rename(directory / "inbox" / "orders.csv")
    terminal = open_terminal(directory, [sys.executable, "-m", "penstock.repl.cli"], "penstock>", 0.0)
    try:
        terminal.program = "penstock"
        steps = [step for step in page_steps(PAGE) if step[0] == "penstock>"]
        for step in steps:
            follow(terminal, *step)
    finally:
        terminal.close()
    terminal.write_recording(directory / "shell.cast", "the shell", idle_s=1.0)
    header, *events = (directory / "shell.cast").read_text(encoding="utf-8").splitlines()
    assert len(steps) == 4 and json.loads(header)["version"] == 2
    assert "its next window closes at" in "".join(json.loads(event)[2] for event in events)
