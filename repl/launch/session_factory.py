"""Makes a session, a printer and messages from the command line and the configuration."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.repl.launch.arguments import key_values
from penstock.repl.launch.config import Config, load_config, with_flags
from penstock.repl.launch.parser import COMMANDS, EXIT_CONNECTION, EXIT_QUERY, EXIT_USAGE, Parser
from penstock.repl.output.messages import EngineLogHandler, Messages

if TYPE_CHECKING:
    from penstock.client.remote.remote_session import RemoteSession
    from penstock.client.session import Session
    from penstock.engine.api.locations import Location
    from penstock.repl.output.printer import Printer, Style


# words that stand for commands elsewhere
_WORD_HINTS = {
    "shell": "penstock alone opens the shell",
    "sql": "penstock alone opens the shell",
    "repl": "penstock alone opens the shell",
    "version": "penstock --version",
    "query": 'penstock -c "SELECT 1" runs a statement',
    "exec": 'penstock -c "SELECT 1" runs a statement',
    "start": "penstock run FILE runs a script",
    "submit": "penstock run FILE runs a script",
    "list": "penstock jobs",
    "install": "pip install 'penstock[spark]' installs an extra",
}


def configured(arguments: argparse.Namespace, parser: Parser) -> Config:
    """Return the configuration under the flags. PenstockError when a file is wrong."""
    settings = key_values(arguments.settings, "--set", parser)
    if arguments.parallelism is not None:
        settings["parallelism.default"] = str(arguments.parallelism)
    # Not every command has this flag, nor a URL.
    if getattr(arguments, "metrics_port", None) is not None:
        settings["metrics.prometheus.port"] = str(arguments.metrics_port)
    url, host = getattr(arguments, "url", None), getattr(arguments, "host", None)
    if host is not None:
        from penstock.client.remote.server_url import host_url  # only with a server

        url = host_url(host)
    config = with_flags(load_config(), url=url, format=arguments.format, settings=settings)
    # a command without --host works in this process, whatever the environment says
    return config if hasattr(arguments, "host") else replace(config, url=None)


def messages_for(arguments: argparse.Namespace, *, quiet: bool = False) -> Messages:
    """Return the messages that go to stderr."""
    messages = Messages(sys.stderr, as_json=arguments.json_errors, color=wants_color(sys.stderr), quiet=quiet)
    # -v: what Spark computes, too
    EngineLogHandler(messages, verbose=getattr(arguments, "verbose", False)).attach()
    return messages


def wants_color(stream: object) -> bool:
    """Return whether a stream is a terminal whose user has not said NO_COLOR."""
    return (
        bool(getattr(stream, "isatty", lambda: False)())
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def style_for(config: Config, *, terminal: bool) -> Style:
    """Return the style of results on stdout."""
    from penstock.repl.output.printer import Style  # Arrow and what prints it: not before the first result
    from penstock.repl.output.table_rendering import Look

    width = shutil.get_terminal_size().columns if terminal else None
    look = Look(
        null=config.null,
        color=terminal and wants_color(sys.stdout),
        width=width,
        # A file or a pipe gets every row.
        max_rows=config.max_rows if terminal else None,
    )
    return Style(
        format=config.format,
        look=look,
        vertical=config.vertical,
        timing=terminal and config.timing,
        terminal=terminal,
    )


def printer_for(config: Config, messages: Messages) -> Printer:
    """Return the printer of stdout."""
    from penstock.repl.output.printer import Printer

    terminal = sys.stdout.isatty()
    # files and pipes get UTF-8 and plain line ends on every platform
    if not terminal and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    if not terminal:
        return Printer(sys.stdout, messages, style_for(config, terminal=False))
    from penstock.repl.output.live_table import show_live  # only where somebody watches

    return Printer(sys.stdout, messages, style_for(config, terminal=True), show_live)


def open_session(
    config: Config, arguments: argparse.Namespace, *, state_dir: Location | None = None
) -> Session | RemoteSession:
    """Return a session with the configured settings, of this process or of a server. Raises PenstockError for
    a wrong setting, a catalog that cannot be read, or a server that does not answer.
    """
    if config.url is not None:
        return _server_session(config, arguments, state_dir)
    from penstock.client.session import Session

    return Session(
        config.settings,
        state_dir=state_dir,
        catalog_dir=Path(arguments.catalog) if arguments.catalog else None,
    )


def _server_session(
    config: Config, arguments: argparse.Namespace, state_dir: Location | None
) -> RemoteSession:
    """Return a session of a server. CLI-6245 for options of an engine in this process."""
    from penstock.client.remote.remote_session import RemoteSession
    from penstock.client.remote.server_url import parse_url

    local = {"--state": state_dir, "--catalog": arguments.catalog}
    found = [flag for flag, value in local.items() if value is not None]
    if found:
        message = f"{found[0]} is of an engine in this process, and statements go to a server"
        hint = f"leave out {found[0]}, or --host (PENSTOCK_URL, url in a configuration file)"
        raise PenstockError("CLI-6245", message, hint=hint, sqlstate="42601")
    return RemoteSession(parse_url(config.url or ""), config.settings)


def in_process(session: Session | RemoteSession) -> Session:
    """Return a session that is one of this process."""
    assert not session.is_remote
    return session  # type: ignore[return-value]  # is_remote says so


def refusal_code(error: PenstockError) -> int:
    """Return the exit code of an error before the first statement. An unknown setting on the command line
    is wrong usage.
    """
    if error.sqlstate.startswith(("08", "28")):
        return EXIT_CONNECTION
    return EXIT_USAGE if error.code == "CLI-6245" or error.code.startswith("SQL-14") else EXIT_QUERY


def word_hint(word: str) -> str:
    """Return what a word was meant to be that stands where a command does."""
    if Path(word).exists():
        return (
            f"penstock run {word} runs it"
            if Path(word).suffix == ".sql"
            else f"penstock -c \"SELECT * FROM '{word}'\" reads it"
        )
    quoted = 'penstock --help lists commands; a statement is quoted: penstock -c "SELECT 1"'
    return _WORD_HINTS.get(word.lower(), quoted)


def refuse_url(config: Config, messages: Messages) -> int | None:
    """Report that a word is no command. Return the exit code, None for a URL or without one."""
    from penstock.catalog.name_suggestions import did_you_mean

    # A URL is meant as one; any other word was meant as a command, or as a script without `run`.
    if config.url is None or "://" in config.url:
        return None
    hint = did_you_mean(config.url, COMMANDS) or word_hint(config.url)
    messages.error(PenstockError("CLI-6100", f"there is no command {config.url}", hint=hint))
    return EXIT_USAGE
