"""The flags of ``penstock serve``, and the file that may set them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.repl.launch.parser import Parser

_EXAMPLES = """\
examples:
  penstock serve --state /var/lib/penstock --flight-port 8815
  penstock serve --state s3://bucket/penstock --postgres-port 5433 --http-port 8080
  penstock serve --config /etc/penstock/server.toml
  penstock serve --state out/state --postgres-port 0        any free port; it is printed

signals: SIGTERM and Ctrl-C end in order, with last checkpoints; a second one ends at once;
         SIGHUP begins a new log file
exit codes: 0 ended in order, 1 it could not start or another server took over, 2 usage, 130 ended at once
"""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def serve_parser() -> Parser:
    """Return the parser of ``penstock serve``."""
    parser = Parser(
        prog="penstock serve",
        description="Serve many clients over one catalog. Jobs and materialized views outlive them and the "
        "server.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--config", metavar="FILE", help="a TOML file with these flags as keys, and a table [settings]")
    add("--state", metavar="DIR", help="a directory or bucket for catalog, jobs and checkpoints (needed)")
    add("--host", default="127.0.0.1", metavar="H", help="the interface of all ports (127.0.0.1)")
    add("--flight-port", type=_port, metavar="N", help="Flight SQL, usually 8815; 0 is any free port")
    add("--postgres-port", type=_port, metavar="N", help="PostgreSQL's protocol, usually 5433")
    add("--http-port", type=_port, metavar="N", help="web page, API and metrics, usually 8080")
    add("--tls-cert", metavar="FILE", help="certificate chain in PEM; all ports then use TLS")
    add("--tls-key", metavar="FILE", help="its private key in PEM")
    add("--users", type=Path, metavar="FILE", help="users and tokens, as penstock user keeps them")
    add(
        "--allowed-path",
        action="append",
        default=[],
        metavar="P",
        help="a directory or URL that clients other than administrators may reach (repeatable)",
    )
    add(
        "--allowed-host",
        action="append",
        default=[],
        metavar="H",
        help="a host that they may reach, * for any letters (repeatable)",
    )
    add("--audit-log", metavar="FILE", help="write each statement and log-in here instead of into the log")
    add("--init", metavar="FILE", help="a script that is run once, when the state is new")
    add("--max-sessions", type=_number, default=2_000, metavar="N", help="sessions at once (2000)")
    add("--max-statements", type=_number, default=500, metavar="N", help="statements executed at once (500)")
    add("--max-results", type=_number, default=100, metavar="N", help="results one session reads (100)")
    add("--max-memory", type=_size, default=0, metavar="SIZE", help="start no query above it: 8g (no limit)")
    add(
        "--session-memory",
        type=_size,
        default=0,
        metavar="SIZE",
        help="what the results of one session may take: 500m (no limit)",
    )
    add(
        "--idle-timeout",
        type=_number,
        default=0,
        metavar="S",
        help="close sessions idle for so long (never)",
    )
    add("--log-file", metavar="FILE", help="write the log here instead of on stderr")
    add("--log-size", type=_size, default=64 << 20, metavar="SIZE", help="begin a new log file at SIZE (64m)")
    add("--json-errors", action="store_true", help="errors as one JSON object a line")
    add(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="K=V",
        help="a setting that every session begins with (repeatable)",
    )
    return parser


def serve_arguments(parser: Parser, words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line over the file that it names."""
    arguments = parser.parse_words(words)
    if arguments.config is not None:
        settings = _apply_file(parser, arguments.config)
        # flags overrule the file, which overrules the defaults
        arguments = parser.parse_words(words)
        arguments.settings = [*settings, *arguments.settings]
    if arguments.state is None:
        parser.error("--state DIR is needed: catalog, jobs and checkpoints are kept there")
    if (arguments.tls_cert is None) is not (arguments.tls_key is None):
        parser.error("--tls-cert and --tls-key go together")
    return arguments


def _apply_file(parser: Parser, path: str) -> list[str]:
    """Make the values of a file the defaults of the parser; return its settings as K=V."""
    import tomllib  # only where there is a file

    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        parser.error(f"--config cannot read {path}: {error}")
    settings = values.pop("settings", {})
    flags = {action.option_strings[-1].removeprefix("--"): action for action in parser.actions()}
    for key, value in values.items():
        action = flags.get(key)
        if action is None or key in ("config", "set", "help"):
            parser.error(f"unrecognized arguments: --{key}")
        parser.set_defaults(**{action.dest: _converted(parser, action, value)})
    return [f"{key}={_text(value)}" for key, value in _flat(settings).items()]


def _converted(parser: Parser, action: argparse.Action, value: Any) -> Any:
    # a flag that is repeatable has a list in the file
    if isinstance(action.default, list) and isinstance(value, list):
        return [str(one) for one in value]
    if not callable(action.type) or isinstance(value, bool):
        return value
    try:
        return action.type(str(value))
    except argparse.ArgumentTypeError as error:
        parser.error(f"argument {action.option_strings[-1]}: {error}")


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested tables as dotted keys: TOML reads ``a.b = 1`` as a table in a table."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _text(value: Any) -> str:
    # Python writes True where SET has true
    return str(value).lower() if isinstance(value, bool) else str(value)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text} is not a port from 0 to 65535")
    return int(text)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number")
    return int(text)


def _size(text: str) -> int:
    digits = text.lower().rstrip("b").rstrip("kmg")
    unit = text.lower().rstrip("b")[len(digits) :]
    if not digits.isdecimal() or unit not in _UNITS:
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 64m or 8g")
    return int(digits) * _UNITS[unit]
