"""The user's preferences: flags over environment over ./penstock.toml over ~/.config/penstock/config.toml,
each value with its origin.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.repl.launch.arguments import FORMATS


@dataclass(frozen=True)
class Config:
    """The shell's own preferences, and settings to SET at the start. ``origin`` says where a key's value
    came from.
    """

    url: str | None = None
    format: str = "table"
    timing: bool = True
    null: str = "NULL"
    max_rows: int = 1_000
    vertical: str = "auto"
    keys: str = "emacs"
    multi_line: bool = True
    history: Path = field(
        default_factory=lambda: _home("XDG_STATE_HOME", ".local/state") / "penstock" / "history"
    )
    named_queries: Path = field(
        default_factory=lambda: _home("XDG_CONFIG_HOME", ".config") / "penstock" / "named_queries.toml"
    )
    pager: bool = True
    settings: dict[str, str] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)


# The type of each key in a TOML file; [settings] are not among them, a session checks those.
_KINDS: dict[str, type] = {
    "url": str,
    "format": str,
    "timing": bool,
    "null": str,
    "max_rows": int,
    "vertical": str,
    "keys": str,
    "multi_line": bool,
    "history": str,
    "named_queries": str,
    "pager": bool,
}
_PATHS = ("history", "named_queries")
_CHOICES = {"format": FORMATS, "vertical": ("auto", "on", "off"), "keys": ("emacs", "vi")}
_ENVIRONMENT = {
    "url": "PENSTOCK_URL",
    "format": "PENSTOCK_FORMAT",
    "history": "PENSTOCK_HISTORY",
    "named_queries": "PENSTOCK_NAMED_QUERIES",
}


def load_config(environ: Mapping[str, str] = os.environ, directory: Path | None = None) -> Config:
    """Return the configuration of this user in this directory. CLI-6120 for a file that cannot be read,
    CLI-6121 for an unknown key.
    """
    config = Config()
    # $PENSTOCK_CONFIG replaces the user's file only: ./penstock.toml is read all the same.
    user = (
        Path(environ["PENSTOCK_CONFIG"])
        if "PENSTOCK_CONFIG" in environ
        else _home("XDG_CONFIG_HOME", ".config", environ) / "penstock" / "config.toml"
    )
    # later files overrule earlier ones
    for path in (user, (directory or Path.cwd()) / "penstock.toml"):
        if path.is_file():
            config = _with_file(config, path)
    for key, variable in _ENVIRONMENT.items():
        # An empty variable counts as none.
        if environ.get(variable):
            config = _with_value(config, key, environ[variable], f"${variable}")
    return config


def with_flags(config: Config, *, url: str | None, format: str | None, settings: Mapping[str, str]) -> Config:
    """Return the configuration under the command line's flags."""
    for key, value in (("url", url), ("format", format)):
        if value is not None:
            config = _with_value(config, key, value, "flag")
    # \set prints the origin of each value.
    origin = config.origin | {f"settings.{key}": "flag" for key in settings}
    return replace(config, settings={**config.settings, **settings}, origin=origin)


def _home(variable: str, default: str, environ: Mapping[str, str] = os.environ) -> Path:
    # XDG: an empty variable means the default, as one that is not set.
    return Path(environ[variable]) if environ.get(variable) else Path.home() / default


def _with_file(config: Config, path: Path) -> Config:
    import tomllib  # only when there is a file

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PenstockError(
            "CLI-6120", f"cannot read {path}", detail=str(error), kind=Kind.EXTERNAL, sqlstate="F0000"
        ) from error
    settings = values.pop("settings", {})
    if not isinstance(settings, dict):
        raise PenstockError(
            "CLI-6121",
            f"{path}: settings is a table",
            hint="write [settings] and one key = value a line",
            sqlstate="F0000",
        )
    for key, value in values.items():
        config = _with_value(config, key, value, str(path))
    texts = {key: _text(value) for key, value in _flat(settings).items()}
    origin = config.origin | {f"settings.{key}": str(path) for key in texts}
    return replace(config, settings={**config.settings, **texts}, origin=origin)


def _with_value(config: Config, key: str, value: Any, origin: str) -> Config:
    kind: type | None = _KINDS.get(key)
    if kind is None:
        raise PenstockError(
            "CLI-6121",
            f"{origin}: there is no key {key}",
            hint=did_you_mean(key, [*_KINDS, "settings"], others=True),
            sqlstate="F0000",
        )
    # In Python True is an int: max_rows = true is refused all the same.
    if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
        raise PenstockError(
            "CLI-6121", f"{origin}: {key} takes a {kind.__name__}, not {value!r}", sqlstate="F0000"
        )
    choices = _CHOICES.get(key)
    if choices and value not in choices:
        raise PenstockError(
            "CLI-6121",
            f"{origin}: {key} cannot be {value!r}",
            hint=did_you_mean(str(value), choices, others=True),
            sqlstate="F0000",
        )
    changes: dict[str, Any] = {key: Path(str(value)) if key in _PATHS else value}
    return replace(config, **changes, origin=config.origin | {key: origin})


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested tables as dotted keys: TOML reads ``a.b = 1`` as a table in a table."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _text(value: Any) -> str:
    # Python writes True where SET has true.
    return str(value).lower() if isinstance(value, bool) else str(value)
