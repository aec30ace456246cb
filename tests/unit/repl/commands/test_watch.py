"""``penstock run --watch``: what a save does to a script that has ended, that runs, or that has an error."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.repl.cli import main
from penstock.repl.commands import watch
from penstock.repl.launch.arguments import run_parser
from tests.harness.patience import PATIENCE_S

ENDLESS = """CREATE TEMPORARY TABLE e (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000');
SELECT a FROM e;
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CONFIG", "/nonexistent")
    return tmp_path / "job.sql"


def run_watched(script: Path, steps: list[Callable[[], None]], *flags: str) -> int:
    """Watch a script. A step is done at each pause in the main thread, with the polls that see it; behind the
    last one comes Ctrl-C.
    """
    left, waits, tick = list(steps), [0], threading.Event()

    def pause(_: float) -> None:
        # the watch of a run that is going on polls in a thread of its own
        if threading.current_thread() is not threading.main_thread():
            tick.wait(0.005)
            return
        # a save is seen by the second poll behind it
        waits[0] += 1
        if waits[0] % 2 == 0:
            return
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    parser = run_parser()
    arguments = parser.parse_words([str(script), "--watch", "--csv", *flags])
    return watch.watch_files(arguments, parser, pause=pause)


def test_a_save_runs_the_script_again_and_an_error_waits_for_the_next(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text("SELECT 1 AS a;")
    steps = [
        lambda: save(script, "SELECT 2 AS a;"),
        lambda: save(script, "SELEC 3 AS a;"),
        lambda: save(script, "SELECT 4 AS a;"),
    ]
    assert run_watched(script, steps) == 130
    out, err = capsys.readouterr()
    assert out.split() == ["a", "1", "a", "2", "a", "4"]
    assert err.count("error[") == 1
    assert "SELEC 3" in err
    assert err.count("was saved: running again") == 3
    assert err.count("waiting for a save") == 4


def test_a_save_ends_a_run_that_never_ends(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Out(io.TextIOBase):
        """Saves the script once rows have come, in the middle of the run."""

        def __init__(self) -> None:
            self.text = ""

        def write(self, text: str) -> int:
            self.text += text
            if self.text.count("\n") > 2 and script.read_text() == ENDLESS:
                save(script, "SELECT 'end' AS z;")
            return len(text)

    out = Out()
    monkeypatch.setattr(sys, "stdout", out)
    script.write_text(ENDLESS)
    code: list[int] = []
    # no Ctrl-C can come to a run that does not end: the test would wait for ever
    guard = threading.Timer(PATIENCE_S, lambda: save(script, "SELECT 'late' AS z;"))
    guard.daemon = True
    guard.start()
    code.append(run_watched(script, []))
    guard.cancel()
    assert code == [130]
    assert out.text.split()[-2:] == ["z", "end"]


def test_the_check_is_watched_too(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text("SELECT nothing;")
    assert run_watched(script, [lambda: save(script, "SELECT 1;")], "--check") == 130
    err = capsys.readouterr().err
    assert err.index("error[SQL-") < err.index("no errors")


def test_a_file_that_does_not_exist_yet_is_awaited(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_watched(script, [lambda: save(script, "SELECT 1 AS a;")]) == 130
    out, err = capsys.readouterr()
    assert "CLI-6131" in err
    assert out.split() == ["a", "1"]


def test_stdin_cannot_be_watched(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run", "--watch", "-"])
    assert left.value.code == 2
    assert "--watch takes files, not stdin" in capsys.readouterr().err


def save(path: Path, text: str) -> None:
    """Replace a file as editors do; its inode changes, so that no clock's resolution matters."""
    staged = path.with_suffix(".new")
    staged.write_text(text)
    staged.replace(path)
