"""Session settings: the values a session has set, and how their texts are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.catalog.declared_settings import SETTINGS, Setting, SettingKind
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.secrets import KNOWN, MASK, names_secret, redact_url

# DURATION is an int of milliseconds, MEMORY one of bytes.
SettingValue = bool | int | str
SPARK = "spark."
"""Keys that begin so are Spark's, whatever follows."""

_BATCHES = "rows are processed in batches, and EMIT CHANGES EVERY INTERVAL gives fewer changes"
_OF_FLINK = {
    "table.exec.mini-batch.": _BATCHES,
    "table.exec.sink.": "a sink gets a key's changes in order, and NULL in a NOT NULL column is an error",
    "table.exec.sort.": "the bounded backend sorts",
    "table.exec.spill-compression.": "spilled rows are compressed anyway",
    "table.optimizer.": "the optimizer chooses by the plan; 'optimizer.disabled-rules' turns a rule off",
    "state.backend": "state is in memory, and in files beyond 'state.memory.budget-per-slot'",
    "sql-client.": "how rows are shown is chosen by --format, and by \\format in the shell",
    "pipeline.object-reuse": "rows are columns that operators share",
    "pipeline.auto-watermark-interval": "a watermark follows each batch of rows",
}
"""Beginnings of Flink's keys that change no row and have nothing to steer here: why."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Zµ]*)\s*")
_DURATION_MS = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
# Powers of 1,024 for kb as for kib, as Flink reads them.
_MEMORY = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kib"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mib"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gib"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tib"), 1 << 40),
}
_BOOLS = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}


def parse_duration_ms(text: str) -> int | None:
    """Return a duration such as ``5 s``, ``50 ms`` or ``1 min`` in milliseconds (no unit: milliseconds),
    or ``None`` when it is none.
    """
    return _scaled(text, _DURATION_MS)


def parse_memory_bytes(text: str) -> int | None:
    """Return a size such as ``64 mb`` in bytes, or ``None`` when it is none."""
    return _scaled(text, _MEMORY)


def _scaled(text: str, units: dict[str, int]) -> int | None:
    match = _DURATION.fullmatch(text)
    if match is None or match[2].lower() not in units:
        return None
    # A whole number is multiplied as an int: a float would round above 2**53.
    number = match[1] if "." in match[1] else None
    return (
        round(float(number) * units[match[2].lower()]) if number else int(match[1]) * units[match[2].lower()]
    )


def _refuse(
    setting: Setting, text: str, wanted: str, span: Span | None, nearest: str | None = None
) -> PenstockError:
    shown = text if len(text) <= 40 else text[:39] + "…"
    hint = f"{nearest} {wanted}" if nearest else wanted
    return PenstockError(
        "SQL-1402", f"'{shown}' is no value for setting '{setting.key}'", span=span, hint=hint
    )


def read_value(setting: Setting, text: str, span: Span | None = None) -> SettingValue:
    """Return the typed value of a setting's text; raise SQL-1402 when the text does not fit its kind."""
    folded = text.strip().lower()
    match setting.kind:
        # true, on, yes, 1
        case SettingKind.BOOL:
            if folded not in _BOOLS:
                raise _refuse(setting, text, "it takes true or false", span)
            return _BOOLS[folded]
        # At most 18 digits: every such number fits 64 bits.
        case SettingKind.INT:
            if not re.fullmatch(r"[+-]?\d{1,18}", folded):
                raise _refuse(setting, text, "it takes a whole number", span)
            return _bounded(setting, int(folded), text, span)
        # Choices are compared without case and returned as declared.
        case SettingKind.ENUM:
            for choice in setting.choices:
                if choice.lower() == folded:
                    return choice
            raise _refuse(
                setting, text, f"it takes {_or(setting.choices)}", span, did_you_mean(folded, setting.choices)
            )
        # In milliseconds: '1.5 min' is 90,000.
        case SettingKind.DURATION:
            if (duration := parse_duration_ms(text)) is None:
                raise _refuse(setting, text, "it takes a duration such as '5 s', '50 ms' or '1 min'", span)
            return duration
        # In bytes.
        case SettingKind.MEMORY:
            if (size := parse_memory_bytes(text)) is None:
                raise _refuse(setting, text, "it takes a size such as '64 mb'", span)
            return size
    # The one STRING whose values are checked here: a wrong zone would fail each row.
    if setting.key == "table.local-time-zone":
        return _zone(setting, text, span)
    return text


def _bounded(setting: Setting, number: int, text: str, span: Span | None) -> int:
    if number < setting.least or (setting.most is not None and number > setting.most):
        limit = (
            f"from {setting.least} to {setting.most}"
            if setting.most is not None
            else f"of at least {setting.least}"
        )
        raise _refuse(setting, text, f"it takes a whole number {limit}", span)
    return number


def _zone(setting: Setting, text: str, span: Span | None) -> str:
    try:
        # OSError: a name such as "Europe" is a directory of the zone database.
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _refuse(setting, text, "it takes a time zone such as 'UTC' or 'Europe/Berlin'", span) from error
    return text


def _or(choices: tuple[str, ...]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def without_effect(key: str) -> str | None:
    """Return why a setting of Flink has no effect here; None for any other key."""
    folded = key.strip().lower()
    if folded in SETTINGS:
        return None
    return next((why for begin, why in _OF_FLINK.items() if folded.startswith(begin)), None)


class Settings:
    """The settings of one session: declared defaults, and over them what was set."""

    def __init__(self, values: dict[str, str] | None = None) -> None:
        self._texts: dict[str, str] = {}
        for key, text in (values or {}).items():
            self.set(key, text)

    def declaration(self, key: str, span: Span | None = None) -> Setting:
        """Return the declaration of a key; raise SQL-1401 with the nearest key when there is none."""
        setting = SETTINGS.get(key.strip().lower())
        # Spark checks its own keys. They are case-sensitive, so the key stays as it was written.
        if setting is None and key.strip().startswith(SPARK):
            return Setting(key.strip(), SettingKind.STRING, "", "a setting of Spark")
        if setting is None:
            hint = did_you_mean(key.strip().lower(), SETTINGS) or "SET without a key lists all settings"
            raise PenstockError("SQL-1401", f"setting '{key}' does not exist", span=span, hint=hint)
        return setting

    def get(self, key: str) -> SettingValue:
        """Return the typed value of a key: bool, int (also milliseconds and bytes) or str."""
        setting = self.declaration(key)
        return read_value(setting, self._texts.get(setting.key, setting.default))

    def set(self, key: str, text: str, span: Span | None = None, *, key_span: Span | None = None) -> None:
        """Set a key from text; raise SQL-1401 for an unknown key and SQL-1402 for a text that does not
        fit.
        """
        setting = self.declaration(key, key_span or span)
        # Read once, so that SET fails and not the job that uses the setting later.
        read_value(setting, text, span)
        self._texts[setting.key] = text
        # Messages of Spark may repeat a password that is one of its settings.
        if names_secret(setting.key):
            KNOWN.remember(text)

    def reset(self, key: str | None = None, span: Span | None = None) -> None:
        """Return one key, or all, to the declared default."""
        if key is None:
            self._texts.clear()
        else:
            self._texts.pop(self.declaration(key, span).key, None)

    def text(self, key: str) -> str:
        """Return the text of a key as it was set or declared."""
        setting = self.declaration(key)
        return self._texts.get(setting.key, setting.default)

    def shown(self, key: str) -> str:
        """Return the text of a key as it may be shown: that of a secret is ``******``."""
        # An empty secret is shown empty: that it is not set is no secret.
        return MASK if names_secret(key) and self.text(key) else redact_url(self.text(key))

    def is_set(self, key: str) -> bool:
        """Return whether a key was set in this session."""
        return self.declaration(key).key in self._texts

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield every declared key with its current text, in declared order, then what was set of Spark's."""
        for key in (*SETTINGS, *self.of_spark()):
            yield key, self.text(key)

    def of_spark(self) -> dict[str, str]:
        """Return what was set of Spark's own settings."""
        return {
            key: text for key, text in self._texts.items() if key.startswith(SPARK) and key not in SETTINGS
        }

    @property
    def version(self) -> frozenset[tuple[str, str]]:
        """What was set, to compare: a plan of equal settings is planned alike."""
        return frozenset(self._texts.items())

    def copy(self) -> Settings:
        """Return an independent copy, such as a job has of its session's settings."""
        return Settings(dict(self._texts))
