"""Meta commands that run statements or show their rows again."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.errors import Kind, PenstockError
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.launch.script_runner import read_script
from penstock.repl.meta_commands.context import MetaContext

if TYPE_CHECKING:
    from penstock.client.statements.dispatch import LocatedStatement

# As psql has it: \watch 2, \watch i=2 c=5.
_WATCH = re.compile(r"(?:(?:i=)?(?P<seconds>\d+(?:\.\d*)?|\.\d+))?\s*(?:c=(?P<count>[1-9]\d*))?")


def run_buffer(context: MetaContext, command: MetaCommand) -> None:
    """Run the statement before the command, or the last one again. With an argument its rows go there."""
    style = context.printer.style
    vertical = style.vertical
    style.vertical = "on" if command.name == r"\gx" else vertical
    try:
        with context.printer.sent_to(command.argument) if command.argument else nullcontext():
            context.run_statement(_statement(context, command))
    finally:
        style.vertical = vertical


def _statement(context: MetaContext, command: MetaCommand) -> LocatedStatement:
    """Return the statement that a command runs. CLI-6143 when nothing was run yet."""
    if command.statement is not None:
        return command.statement
    if not context.last_statement:
        raise PenstockError(
            "CLI-6143", f"there is no statement that {command.name} could run", hint="write one before it"
        )
    return context.session.parse(context.last_statement)[-1]


def include(context: MetaContext, command: MetaCommand) -> None:
    r"""Run a script. ``\ir`` takes its path relative to the script that has the command."""
    path = included_path(command)
    resolved = str(Path(path).resolve())
    # The outermost script was not included, but must not be included either.
    outer = [str(Path(command.source.file).resolve())] if command.source.file else []
    depth = len(context.included)
    context.included += [*outer, resolved]
    try:
        if resolved in context.included[:-1]:
            raise PenstockError("CLI-6147", f"{path} would be included in itself", hint="remove the command")
        # \q ends the script, and not the one that includes it.
        context.run_statements(read_script(path), path)
    finally:
        del context.included[depth:]


def included_path(command: MetaCommand) -> str:
    r"""Return the path of the script that ``\i`` or ``\ir`` includes; CLI-6141 without one."""
    if not command.argument:
        raise PenstockError("CLI-6141", f"{command.name} takes a file", hint=f"{command.name} FILE")
    path = command.argument.strip("'")
    here = command.source.file
    return str(Path(here).parent / path) if command.name == r"\ir" and here is not None else path


def send_output(context: MetaContext, command: MetaCommand) -> None:
    """Print rows into a file or a command from now on, or on the screen again."""
    # The file is opened here: a wrong path fails at \o and not at the next result.
    context.printer.send_to(command.argument or None)
    context.note(f"rows go to {command.argument}" if command.argument else "rows go to the screen")


def edit(context: MetaContext, command: MetaCommand) -> None:
    """Edit the last statement, or a file, for the next prompt."""
    if not context.interactive:
        raise PenstockError("CLI-6146", r"\e needs a prompt, and a script has none")
    # $EDITOR may have flags, such as `code --wait`.
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
        # A file of the user stays; the last statement is edited in a file that goes with its directory.
        path = Path(command.argument) if command.argument else Path(directory) / "statement.sql"
        if not command.argument:
            path.write_text(context.last_statement + ";\n" * bool(context.last_statement), encoding="utf-8")
        try:
            subprocess.run([*editor, str(path)], check=True)
            # The text is put into the next prompt and does not run before Enter.
            context.next_input = path.read_text(encoding="utf-8").strip()
        except (OSError, subprocess.CalledProcessError) as error:
            hint = "set $EDITOR to the editor you like"
            raise PenstockError(
                "CLI-6142",
                f"{editor[0]} did not edit {path.name}: {error}",
                hint=hint,
                kind=Kind.EXTERNAL,
                sqlstate="58030",
            ) from error


def watch(context: MetaContext, command: MetaCommand) -> None:
    """Run a statement every few seconds, so many times or until Ctrl-C; an endless query watches itself."""
    words = _WATCH.fullmatch(command.argument)
    if words is None:
        raise PenstockError(
            "CLI-6141", rf"\watch takes seconds, not {command.argument}", hint=r"\watch 2, or \watch 2 c=5"
        )
    seconds, count = float(words["seconds"] or 2), int(words["count"] or 0)
    statement = _statement(context, command)
    context.last_statement = statement.text
    # Ctrl-C ends the loop: KeyboardInterrupt reaches the shell, which stays.
    for run in itertools.count(1):
        result = context.session.run(statement)
        # Its first result would never end, so there would be no second one.
        if not result.shape.finite:
            result.cancel()
            raise PenstockError(
                "CLI-6144", "this query never ends: it watches itself", hint="run it without \\watch"
            )
        context.printer.show(result)
        if run == count:
            return
        # \watch 0 must not keep a core busy.
        time.sleep(max(0.1, seconds))
