"""``penstock run --watch``: runs scripts again whenever one of their files is saved."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.repl.commands.run import run_files
from penstock.repl.launch.parser import EXIT_INTERRUPTED, EXIT_USAGE, Parser
from penstock.repl.launch.script_runner import ScriptRunner
from penstock.repl.launch.session_factory import messages_for
from penstock.repl.launch.watched_files import WatchedFiles
from penstock.repl.output.messages import Messages

# a save is answered within half a second; four looks a second at a few files cost nothing
POLL_S = 0.25


def watch_files(
    arguments: argparse.Namespace, parser: Parser, *, pause: Callable[[float], None] = time.sleep
) -> int:
    """Run the files now and after every save, each time in a new session, until Ctrl-C. A save ends the run
    before. An error is printed, and the next save is awaited.
    """
    messages = messages_for(arguments)
    # stdin cannot be read a second time
    if "-" in arguments.files:
        parser.error("--watch takes files, not stdin")
    files = WatchedFiles(arguments.files)
    while True:
        files.look()
        watch = _Watch(files, pause)
        code = run_files(arguments, parser, following=watch.following)
        # wrong usage is no matter of the files: a save would not mend it
        if code == EXIT_USAGE and all(Path(name).exists() for name in arguments.files):
            return code
        if code == EXIT_INTERRUPTED and watch.saved is None:
            return code
        try:
            _await_save(watch, files, messages, pause)
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED


def _await_save(
    watch: _Watch, files: WatchedFiles, messages: Messages, pause: Callable[[float], None]
) -> None:
    """Wait until a file is saved, unless one was saved during the run, and report which."""
    if watch.saved is None:
        messages.note("waiting for a save (Ctrl-C ends)")
    while watch.saved is None:
        pause(POLL_S)
        watch.saved = files.poll()
    messages.note(f"{watch.saved} was saved: running again")


class _Watch:
    """The watch over one run: a thread that ends the run when a file is saved. ``saved`` is that file."""

    def __init__(self, files: WatchedFiles, pause: Callable[[float], None]) -> None:
        self.saved: Path | None = None
        self._files = files
        self._pause = pause
        self._over = threading.Event()

    @contextmanager
    def following(self, runner: ScriptRunner) -> Iterator[None]:
        """Watch while the block runs."""
        thread = threading.Thread(target=self._watch, args=(runner,), name="penstock-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            # the runner must not be cancelled behind its end, when its session is closed
            thread.join()

    def _watch(self, runner: ScriptRunner) -> None:
        while not self._over.is_set():
            self._pause(POLL_S)
            if self.saved is None:
                self.saved = self._files.poll()
            # again and again: a statement that begins at this moment is not among those cancelled
            if self.saved is not None and not self._over.is_set():
                runner.abandon()
