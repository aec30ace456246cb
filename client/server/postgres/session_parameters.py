"""Parameters of a PostgreSQL session: what drivers SET and SHOW. Some of them are settings of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.settings import parse_duration_ms
from penstock.catalog.tables import DEFAULT_DATABASE

SERVER_VERSION = "15.0"
"""The version of PostgreSQL whose catalog and protocol are served: that of the psql of the tests."""
ZONE_SETTING = "table.local-time-zone"
_FIXED = {
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "max_identifier_length": "63",
    "is_superuser": "off",
    "in_hot_standby": "off",
    "default_transaction_read_only": "off",
    "max_index_keys": "32",
    "block_size": "8192",
    "lc_collate": "C",
    "lc_ctype": "C",
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "transaction_read_only": "off",
    "data_directory_mode": "0700",
    "wal_level": "logical",
}
_DEFAULTS = {
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "application_name": "",
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "search_path": f'"$user", {DEFAULT_DATABASE}',
    "client_min_messages": "notice",
    "bytea_output": "hex",
    "row_security": "on",
    "jit": "off",
    "synchronous_commit": "on",
    "default_transaction_deferrable": "off",
    "transaction_deferrable": "off",
    "session_authorization": "",
    "geqo": "on",
    "enable_seqscan": "on",
    "plan_cache_mode": "auto",
    "role": "none",
    "xmloption": "content",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "check_function_bodies": "on",
    "quote_all_identifiers": "off",
    "tcp_keepalives_idle": "0",
}
REPORTED = {
    "server_version": "server_version",
    "server_encoding": "server_encoding",
    "client_encoding": "client_encoding",
    "application_name": "application_name",
    "datestyle": "DateStyle",
    "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone",
    "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings",
    "is_superuser": "is_superuser",
    "in_hot_standby": "in_hot_standby",
    "session_authorization": "session_authorization",
}
"""Parameters that a client is told of at the start and at each change, as it spells them."""
_UTF8 = frozenset({"utf8", "unicode"})


class ZoneSetting(Protocol):
    """The settings of the session, of which the time zone is one."""

    def text(self, key: str) -> str:
        """Return the text of a setting."""

    def set(self, key: str, text: str) -> None:
        """Change a setting."""

    def reset(self, key: str | None = None) -> None:
        """Return a setting to its default."""


class SessionParameters:
    """The values of a session's parameters. Names are compared without case."""

    def __init__(self, settings: ZoneSetting, startup: Mapping[str, str]) -> None:
        self._settings = settings
        self._startup: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._zone = settings.text(ZONE_SETTING)
        for name, value in startup.items():
            if name.lower() in _DEFAULTS or name.lower() == "timezone":
                self.set(name, value)
        self._startup, self._values = dict(self._values), {}

    @property
    def statement_timeout_s(self) -> float | None:
        """How long a statement may take; None: for ever."""
        milliseconds = parse_duration_ms(self.get("statement_timeout")) or 0
        return milliseconds / 1000 or None

    @property
    def is_silent(self) -> bool:
        """Whether the client wants no NOTICE."""
        return self.get("client_min_messages").lower() in ("warning", "error")

    def get(self, name: str) -> str:
        """Return a value. CLI-6226 (SQLSTATE 42704) for a name that is none."""
        folded = name.lower()
        if folded in ("timezone", "time zone"):
            return self._settings.text(ZONE_SETTING)
        if folded in _FIXED:
            return _FIXED[folded]
        if folded not in _DEFAULTS:
            raise unknown_parameter(name)
        return self._values.get(folded, self._startup.get(folded, _DEFAULTS[folded]))

    def all(self) -> list[tuple[str, str]]:
        """Return every parameter with its value, by name."""
        names = sorted({*_FIXED, *_DEFAULTS, "timezone"})
        return [(REPORTED.get(name, name), self.get(name)) for name in names]

    def set(self, name: str, value: str) -> None:
        """Change a value. CLI-6227 for a value that is not served here, CLI-6226 for an unknown name."""
        folded = name.lower()
        if folded in ("timezone", "time zone"):
            self._settings.set(ZONE_SETTING, value)
            return
        if folded in _FIXED:
            if value.lower() not in (_FIXED[folded].lower(), "true" if _FIXED[folded] == "on" else "false"):
                raise _refused(name, value, f"it is always {_FIXED[folded]}")
            return
        if folded not in _DEFAULTS:
            raise unknown_parameter(name)
        self._values[folded] = _checked(folded, value)

    def reset(self, name: str | None) -> None:
        """Return one value, or all, to those of the start."""
        if name is None or name.lower() in ("timezone", "time zone"):
            self._settings.set(ZONE_SETTING, self._zone)
        if name is None:
            self._values.clear()
        elif name.lower() not in ("timezone", "time zone"):
            self.get(name)
            self._values.pop(name.lower(), None)


def _checked(name: str, value: str) -> str:
    """Return the value as it is shown; refuse what would change how values are written."""
    folded = value.strip().lower()
    if name == "client_encoding":
        if re.sub(r"[^a-z0-9]", "", folded) not in _UTF8:
            raise _refused(name, value, "texts are sent as UTF8 only")
        return "UTF8"
    if name == "datestyle":
        # ISO, MDY: the order only matters to dates that are not ISO
        if folded.split(",")[0].strip() not in ("iso", "mdy", "dmy", "ymd"):
            raise _refused(name, value, "dates are written as ISO only")
        return "ISO, MDY"
    if name == "intervalstyle" and folded != "postgres":
        raise _refused(name, value, "intervals are written in the style postgres only")
    if name == "bytea_output" and folded != "hex":
        raise _refused(name, value, "bytes are written as hex only")
    if name == "statement_timeout" and parse_duration_ms(folded) is None:
        raise _refused(name, value, "write a number of milliseconds, or '5 s'")
    return value


def _refused(name: str, value: str, why: str) -> PenstockError:
    return PenstockError("CLI-6227", f"parameter {name} cannot be {value[:40]!r}", hint=why, sqlstate="22023")


def unknown_parameter(name: str) -> PenstockError:
    """Return the error of a parameter that does not exist."""
    hint = (
        did_you_mean(name.lower(), [*_DEFAULTS, *_FIXED])
        or "SHOW ALL lists them; SET 'key' = 'value' sets ours"
    )
    return PenstockError(
        "CLI-6226", f'unrecognized configuration parameter "{name[:60]}"', hint=hint, sqlstate="42704"
    )
