"""Declared options of connectors: key, kind, default, help; how a text becomes a value, and what is said
when it does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean

# DURATION is an int of milliseconds, MEMORY one of bytes.
OptionValue = None | bool | int | str


class OptionKind(StrEnum):
    """The type of an option's value: DURATION is milliseconds, MEMORY bytes, CHARACTER one character
    (``\\t`` is a tab).
    """

    BOOL = "bool"
    INT = "int"
    DURATION = "duration"
    MEMORY = "memory"
    STRING = "string"
    ENUM = "enum"
    CHARACTER = "character"


@dataclass(frozen=True)
class Option:
    """One option. ``*`` in the key is one column name; ``default`` is the typed value used when
    the option is absent.
    """

    key: str
    kind: OptionKind = OptionKind.STRING
    default: OptionValue = None
    help: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    secret: bool = False
    minimum: int | None = None

    def matches(self, key: str) -> bool:
        """Return whether a key written by the user (lower case) is this option."""
        if "*" not in self.key:
            return key == self.key
        # fields.*.min is fields.price.min: the column's name has one letter at least.
        head, tail = self.key.split("*")
        return len(key) > len(head) + len(tail) and key.startswith(head) and key.endswith(tail)

    def parse(self, key: str, text: str, span: Span | None = None) -> OptionValue:
        """Return the typed value of a text; SQL-1505 for a bad value, SQL-1506 for a bad unit."""
        try:
            value = _PARSERS[self.kind](text)
        # Before ValueError, from which it derives.
        except _BadUnit as bad:
            what = f"has no unit '{bad.unit}'" if bad.unit else "needs a unit"
            raise PenstockError("SQL-1506", f"option '{key}' {what}", hint=bad.hint, span=span) from None
        except ValueError:
            # A password that does not parse is still a password.
            shown = "******" if self.secret else f"'{text[:60]}'"
            raise PenstockError(
                "SQL-1505",
                f"option '{key}' cannot be {shown}",
                hint=f"write {_EXAMPLES[self.kind]}",
                span=span,
            ) from None
        if self.kind is OptionKind.ENUM:
            value = self._choice(key, str(value), span)
        # Also of durations and sizes, in milliseconds and bytes.
        if self.minimum is not None and isinstance(value, int) and value < self.minimum:
            raise PenstockError(
                "SQL-1505",
                f"option '{key}' cannot be '{text.strip()}'",
                hint=f"the least is {self.minimum}",
                span=span,
            )
        return value

    def _choice(self, key: str, text: str, span: Span | None) -> str:
        if text.lower() in self.choices:
            return text.lower()
        hint = did_you_mean(text, self.choices) or f"it is one of {', '.join(self.choices)}"
        raise PenstockError("SQL-1505", f"option '{key}' cannot be '{text[:60]}'", hint=hint, span=span)


class _BadUnit(ValueError):
    def __init__(self, unit: str, hint: str) -> None:
        super().__init__(unit)
        self.unit, self.hint = unit, hint


# 5 s, 1.5GB: a number and a unit.
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
# Without a unit a duration is refused: '5' might mean seconds or milliseconds.
_MILLISECONDS = {"ms": 1, "s": 1000, "sec": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Flink's words: 5 seconds, 1 hour.
_MILLISECONDS |= {
    f"{word}{end}": factor for word, factor in (("milli", 1), ("millisecond", 1)) for end in ("", "s")
}
_MILLISECONDS |= {
    f"{word}{end}": _MILLISECONDS[word[0]]
    for word in ("second", "minute", "hour", "day")
    for end in ("", "s")
}
# Powers of 1,024 for kb as for kib; without a unit bytes.
_BYTES = {
    "": 1,
    "b": 1,
    "kb": 1 << 10,
    "mb": 1 << 20,
    "gb": 1 << 30,
    "tb": 1 << 40,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}


def _quantity(text: str, units: dict[str, int], example: str) -> int:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    number, unit = match.groups()
    factor = units.get(unit.lower())
    if factor is None:
        raise _BadUnit(unit, (did_you_mean(unit.lower(), units) if unit else None) or f"write {example}")
    # '1.5 s' is 1,500.
    return round(float(number) * factor)


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of '5 s', '50 ms', '1 min'; ValueError when it is none."""
    return _quantity(text, _MILLISECONDS, _EXAMPLES[OptionKind.DURATION])


def parse_memory_bytes(text: str) -> int:
    """Return the bytes of '64 mb', '1gb', '4096'; ValueError when it is none."""
    return _quantity(text, _BYTES, _EXAMPLES[OptionKind.MEMORY])


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(text)
    return word == "true"


def _parse_int(text: str) -> int:
    # At most 18 digits: every such number fits 64 bits.
    # 64 bits, as ids of snapshots have
    if re.fullmatch(r"[+-]?\d{1,19}", text.strip()) is None or abs(int(text)) >= 1 << 63:
        raise ValueError(text)
    return int(text)


def _parse_character(text: str) -> str:
    # '\t' in SQL is two characters.
    text = "\t" if text == "\\t" else text
    # One byte: the CSV kernels compare bytes. Line ends separate records and cannot separate values.
    if len(text.encode()) != 1 or text in "\r\n":
        raise ValueError(text)
    return text


_PARSERS: dict[OptionKind, Callable[[str], OptionValue]] = {
    OptionKind.BOOL: _parse_bool,
    OptionKind.INT: _parse_int,
    OptionKind.DURATION: parse_duration_ms,
    OptionKind.MEMORY: parse_memory_bytes,
    OptionKind.STRING: str,
    # The choice is compared later: Option.parse knows the choices.
    OptionKind.ENUM: str.strip,
    OptionKind.CHARACTER: _parse_character,
}
# Behind "write" in a hint.
_EXAMPLES = {
    OptionKind.BOOL: "'true' or 'false'",
    OptionKind.INT: "a whole number such as '100'",
    OptionKind.DURATION: "a duration such as '500 ms', '5 s' or '1 min'",
    OptionKind.MEMORY: "a size such as '64 mb'",
    OptionKind.STRING: "a text",
    OptionKind.ENUM: "one of its choices",
    OptionKind.CHARACTER: "one character such as ';'",
}
