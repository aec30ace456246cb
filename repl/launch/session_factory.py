"""Makes a session, a printer and messages from the command line and the configuration."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.repl.launch.arguments import key_values
from penstock.repl.launch.config import Config, load_config, with_flags
from penstock.repl.launch.parser import COMMANDS, EXIT_CONNECTION, EXIT_QUERY, EXIT_USAGE, Parser
from penstock.repl.output.messages import EngineLogHandler, Messages

if TYPE_CHECKING:
    from penstock.catalog.errors import PenstockError
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
    return with_flags(
        load_config(), url=getattr(arguments, "url", None), format=arguments.format, settings=settings
    )


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
) -> Session:
    """Return a session with the configured settings; raises PenstockError for a wrong setting or a catalog
    that cannot be read.
    """
    from penstock.client.session import Session

    return Session(
        config.settings,
        state_dir=state_dir,
        catalog_dir=Path(arguments.catalog) if arguments.catalog else None,
    )


def refusal_code(error: PenstockError) -> int:
    """Return the exit code of an error before the first statement. An unknown setting on the command line
    is wrong usage.
    """
    return EXIT_USAGE if error.code.startswith("SQL-14") else EXIT_QUERY


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
    """Report that this release has no server, or that a word is no command. Return the exit code, None
    without a URL.
    """
    from penstock.catalog.errors import PenstockError
    from penstock.catalog.name_suggestions import did_you_mean

    if config.url is None:
        return None
    # A URL is meant as one; any other word was meant as a command, or as a script without `run`.
    if "://" in config.url:
        hint = "without a URL the engine runs in this process"
        messages.error(
            PenstockError(
                "CLI-6020",
                f"cannot connect to {config.url}: this release has no server",
                hint=hint,
                sqlstate="08001",
            )
        )
        return EXIT_CONNECTION
    hint = did_you_mean(config.url, COMMANDS) or word_hint(config.url)
    messages.error(PenstockError("CLI-6100", f"there is no command {config.url}", hint=hint))
    return EXIT_USAGE
