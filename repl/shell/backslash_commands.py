"""The actions of the backslash commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.repl.launch.script_runner import read_script
from penstock.repl.output.row_writers import FORMATS
from penstock.repl.shell.backslash_table import ALIASES, COMMANDS

if TYPE_CHECKING:
    from penstock.repl.shell.shell_context import ShellContext

# A part of a.b.c: in quotes, or up to the next dot.
_NAME_PART = re.compile(r'`[^`]*`|"[^"]*"|[^.]+')
_ROWS_MODES = ("auto", "table", "changelog")


def run_command(context: ShellContext, text: str) -> bool:
    """Run one command; return False when it leaves the shell. CLI-6140 with the nearest name for an
    unknown one.
    """
    # Users end a command as they end a statement: \dt; is \dt.
    name, _, rest = text.rstrip("; \n").partition(" ")
    name, argument = ALIASES.get(name, name), rest.strip()
    if name == r"\q":
        return False
    action = _ACTIONS.get(name)
    if action is None:
        known = [command for command, _, _ in COMMANDS]
        raise PenstockError(
            "CLI-6140",
            f"there is no command {name}",
            hint=did_you_mean(name, known) or r"\? lists the commands",
        )
    action(context, argument)
    return True


def _help(context: ShellContext, argument: str) -> None:
    width = max(len(f"{name} {arguments}") for name, arguments, _ in COMMANDS)
    lines = [f"{f'{name} {arguments}':{width}}  {help}" for name, arguments, help in COMMANDS]
    sys.stdout.write("\n".join(lines) + "\n")


def _sql(statement: str) -> Callable[[ShellContext, str], None]:
    """Return an action that runs a statement; the argument takes the place of ``{}``, or the part after
    ``|`` is left out without one.
    """

    def action(context: ShellContext, argument: str) -> None:
        always, _, with_argument = statement.partition("|")
        # The argument goes between quotes: one inside it must not end the string.
        quoted = argument.replace("'", "''")
        _run_sql(context, always + (with_argument.format(quoted) if argument else ""))

    return action


def _run_sql(context: ShellContext, text: str) -> None:
    for parsed in context.session.parse(text):
        context.printer.show(context.session.run(parsed))


def _describe(context: ShellContext, argument: str) -> None:
    # \d 'orders.csv': a file is a table.
    if len(argument) > 1 and argument[0] == argument[-1] == "'":
        _run_sql(context, f"DESCRIBE {argument}")
    elif argument:
        # Each part in backticks: a reserved word is a name then. A dot in quotes separates nothing.
        parts = [part.strip('`"').replace("`", "``") for part in _NAME_PART.findall(argument)]
        _run_sql(context, "DESCRIBE " + ".".join(f"`{part}`" for part in parts))
    else:
        _sql("SHOW TABLES")(context, "")
        if context.session.catalog.views():
            _sql("SHOW VIEWS")(context, "")


def _like(statement: str) -> Callable[[ShellContext, str], None]:
    """Return an action that lists names; its argument is a pattern with * or %, or a part of the name."""

    def action(context: ShellContext, argument: str) -> None:
        # \dt ord: the names that contain ord. \dt ord*: those that begin with it.
        pattern = argument.replace("*", "%")
        _sql(f"{statement}| LIKE '{{}}'")(
            context, pattern if not pattern or "%" in pattern else f"%{pattern}%"
        )

    return action


def _connectors(context: ShellContext, argument: str) -> None:
    from penstock.client.statements.show import connector_list

    if argument:
        _sql("SHOW CONNECTORS| LIKE '{}'")(context, argument.replace("*", "%"))
    else:
        context.printer.show(connector_list())


def _jobs(context: ShellContext, argument: str) -> None:
    from penstock.client.statements.jobs import list_jobs

    if argument:
        _run_sql(context, "DESCRIBE JOB '{}'".format(argument.replace("'", "''")))
    else:
        # A long session ends many jobs: those that still run are what one looks for.
        running = [job for job in context.session.jobs() if not job.state.terminal]
        context.printer.show(list_jobs(running))


def _syntax(context: ShellContext, argument: str) -> None:
    from penstock.client.statements.show import help_on

    context.printer.show(help_on(argument or None))


def _switch(argument: str, now: bool, command: str) -> bool:
    # Without an argument the switch changes, as in psql.
    values = {"": not now, "on": True, "off": False}
    if argument not in values:
        raise PenstockError(
            "CLI-6141",
            f"{command} takes on or off, not {argument}",
            hint=did_you_mean(argument, ("on", "off")),
        )
    return values[argument]


def _vertical(context: ShellContext, argument: str) -> None:
    style = context.printer.style
    if argument == "auto":
        style.vertical = "auto"
    else:
        # \x alone changes between on and off; auto becomes on.
        style.vertical = "on" if _switch(argument, style.vertical == "on", r"\x") else "off"
    context.note(f"one field a line: {style.vertical}")


def _rows_only(context: ShellContext, argument: str) -> None:
    style = context.printer.style
    # \t on means no heading: the field is the opposite of the switch.
    style.look = replace(style.look, show_heading=not _switch(argument, not style.look.show_heading, r"\t"))
    context.note(f"rows only: {'off' if style.look.show_heading else 'on'}")


def _timing(context: ShellContext, argument: str) -> None:
    style = context.printer.style
    style.timing = _switch(argument, style.timing, r"\timing")
    context.note(f"timing: {'on' if style.timing else 'off'}")


def _mode(context: ShellContext, argument: str) -> None:
    style = context.printer.style
    if argument in _ROWS_MODES:
        style.mode = argument
        # The word is both a mode and a format.
        if argument == "table":
            style.format = "table"
    elif argument in FORMATS:
        style.format = argument
    elif argument:
        known = (*_ROWS_MODES, *FORMATS)
        raise PenstockError(
            "CLI-6141",
            rf"\mode cannot be {argument}",
            hint=did_you_mean(argument, known) or f"there is {', '.join(known)}",
        )
    # \mode alone changes nothing and prints both.
    context.note(f"mode {style.mode}, format {style.format}")


def _pset(context: ShellContext, argument: str) -> None:
    style = context.printer.style
    key, _, value = argument.partition(" ")
    if key == "null":
        style.look = replace(style.look, null=value.strip("'"))
    elif key == "max_rows" and value.isdigit():
        # 0 is no limit.
        style.look = replace(style.look, max_rows=int(value) or None)
    elif key:
        raise PenstockError(
            "CLI-6141",
            rf"\pset cannot set {argument}",
            hint=did_you_mean(key, ("null", "max_rows")) or r"\pset null TEXT, \pset max_rows N",
        )
    context.note(f"null {style.look.null!r}, max_rows {style.look.max_rows or 'none'}")


def _set(context: ShellContext, argument: str) -> None:
    key, _, value = argument.partition(" ")
    # \set KEY VALUE is SET; \set alone prints everything, \set PREFIX the settings that begin so.
    if value:
        context.session.settings.set(key, value.strip().strip("'"))
        return
    origin = context.config.origin
    # First the shell's preferences, which only files, variables and flags set.
    for name in ("format", "timing", "null", "max_rows", "vertical", "keys", "history"):
        sys.stdout.write(f"{name} = {getattr(context.config, name)} ({origin.get(name, 'default')})\n")
    settings = context.session.settings
    for name, _ in settings.items():
        # Then the settings that somebody set; shown masks secrets.
        if (not key or name.startswith(key)) and settings.is_set(name):
            sys.stdout.write(f"{name} = {settings.shown(name)} ({origin.get(f'settings.{name}', 'SET')})\n")


def _include(context: ShellContext, argument: str) -> None:
    if not argument:
        raise PenstockError("CLI-6141", r"\i takes a file", hint=r"\i FILE runs a script")
    context.run_statements(read_script(argument), argument)


def _output(context: ShellContext, argument: str) -> None:
    try:
        # The file is opened here: a wrong path fails at \o and not at the next result.
        context.send_output_to(argument or None)
    except OSError as error:
        raise PenstockError(
            "CLI-6131", f"cannot write {argument}: {error.strerror}", kind=Kind.EXTERNAL, sqlstate="58030"
        ) from error
    context.note(f"rows go to {argument}" if argument else "rows go to the screen")


def _edit(context: ShellContext, argument: str) -> None:
    # $EDITOR may have flags, such as `code --wait`.
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
        # A file of the user stays; the last statement is edited in a file that goes with its directory.
        path = Path(argument) if argument else Path(directory) / "statement.sql"
        if not argument:
            path.write_text(context.last_statement + "\n", encoding="utf-8")
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


def _watch(context: ShellContext, argument: str) -> None:
    """Run the last statement every few seconds until Ctrl-C; an endless query watches itself."""
    try:
        seconds = float(argument or 2)
    except ValueError:
        raise PenstockError("CLI-6141", rf"\watch takes seconds, not {argument}") from None
    if not context.last_statement:
        raise PenstockError("CLI-6143", "there is no statement to watch", hint="run one first")
    # Ctrl-C ends the loop: KeyboardInterrupt reaches the shell, which stays.
    while True:
        for parsed in context.session.parse(context.last_statement):
            result = context.session.run(parsed)
            # Its first result would never end, so there would be no second one.
            if not result.shape.finite:
                result.cancel()
                raise PenstockError(
                    "CLI-6144", "this query never ends: it watches itself", hint="run it without \\watch"
                )
            context.printer.show(result)
        # \watch 0 must not keep a core busy.
        time.sleep(max(0.1, seconds))


def _error_details(context: ShellContext, argument: str) -> None:
    if context.last_error is None:
        context.note("there was no error")
    else:
        sys.stdout.write(json.dumps(context.last_error.as_dict(), indent=2) + "\n")


def _connect(context: ShellContext, argument: str) -> None:
    hint = "penstock without a URL runs the engine in this process"
    raise PenstockError(
        "CLI-6020",
        f"cannot connect to {argument or 'nothing'}: this release has no server",
        hint=hint,
        sqlstate="08001",
    )


def _connection_info(context: ShellContext, argument: str) -> None:
    # The engine: not before somebody asks.
    from penstock.engine.bounded.backend_choice import describe_backend

    session = context.session
    state = session.state.state_dir or session.settings.get("execution.checkpointing.dir") or "in memory"
    lines = (
        f"penstock {version('penstock')} in this process (there is no server)",
        f"catalog: {session.catalog.current.catalog}, database: {session.catalog.current.database}",
        f"bounded queries: {describe_backend(session.settings)}",
        f"checkpoints: {state}",
        f"jobs: {context.status() or 'none running'}",
    )
    sys.stdout.write("\n".join(lines) + "\n")


_ACTIONS: dict[str, Callable[[ShellContext, str], None]] = {
    r"\?": _help,
    r"\h": _syntax,
    r"\d": _describe,
    r"\dt": _like("SHOW TABLES"),
    r"\dv": _like("SHOW VIEWS"),
    r"\df": _like("SHOW FUNCTIONS"),
    r"\dc": _connectors,
    r"\dj": _jobs,
    r"\dj+": _like("SHOW JOBS"),
    r"\x": _vertical,
    r"\t": _rows_only,
    r"\timing": _timing,
    r"\mode": _mode,
    r"\pset": _pset,
    r"\set": _set,
    r"\i": _include,
    r"\o": _output,
    r"\e": _edit,
    r"\watch": _watch,
    r"\errverbose": _error_details,
    r"\conninfo": _connection_info,
    r"\c": _connect,
}
