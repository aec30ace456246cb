"""Meta commands about the session: its settings, its last error, where it runs."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

from penstock.catalog.errors import PenstockError
from penstock.repl.launch.script_parts import MetaCommand
from penstock.repl.meta_commands.context import MetaContext


def set_or_list(context: MetaContext, command: MetaCommand) -> None:
    """Set a setting; without a value, print what is set and where each value came from."""
    key, _, value = command.argument.partition(" ")
    # \set KEY VALUE is SET; \set alone prints everything, \set PREFIX the settings that begin so.
    if value:
        context.session.settings.set(key, value.strip().strip("'"))
        return
    origin = context.config.origin
    # First the shell's preferences, which only files, variables and flags set.
    for name in (
        "format",
        "timing",
        "null",
        "max_rows",
        "vertical",
        "pager",
        "keys",
        "history",
        "named_queries",
    ):
        sys.stdout.write(f"{name} = {getattr(context.config, name)} ({origin.get(name, 'default')})\n")
    settings = context.session.settings
    for name, _ in settings.items():
        # Then the settings that somebody set; shown masks secrets.
        if (not key or name.startswith(key)) and settings.is_set(name):
            sys.stdout.write(f"{name} = {settings.shown(name)} ({origin.get(f'settings.{name}', 'SET')})\n")


def show_error(context: MetaContext, command: MetaCommand) -> None:
    """Print all that is known of the last error."""
    if context.last_error is None:
        context.note("there was no error")
    else:
        sys.stdout.write(json.dumps(context.last_error.as_dict(), indent=2) + "\n")


def connect(context: MetaContext, command: MetaCommand) -> None:
    """Refuse to leave the session for another: its jobs and tables would go with it."""
    where = command.argument or "127.0.0.1:8815"
    message = "this session stays where it is: a shell has one"
    hint = f"penstock -H {where} opens a shell there"
    raise PenstockError("CLI-6245", message, hint=hint, sqlstate="0A000")


def show_connection(context: MetaContext, command: MetaCommand) -> None:
    """Print where statements run, and who computes bounded queries."""
    # The engine: not before somebody asks.
    from penstock.engine.bounded.backend_choice import describe_backend

    session = context.session
    if session.is_remote:
        path = session.catalog.current
        at_server = (
            f"penstock {version('penstock')}, statements run at {session.url.address}",  # type: ignore[attr-defined]
            f"catalog: {path.catalog}, database: {path.database}",
        )
        sys.stdout.write("\n".join(at_server) + "\n")
        return
    state = session.state.state_dir or session.settings.get("execution.checkpointing.dir") or "in memory"
    lines = (
        f"penstock {version('penstock')} in this process (there is no server)",
        f"catalog: {session.catalog.current.catalog}, database: {session.catalog.current.database}",
        f"bounded queries: {describe_backend(session.settings)}",
        f"checkpoints: {state}",
        f"jobs: {context.status() or 'none running'}",
    )
    sys.stdout.write("\n".join(lines) + "\n")
