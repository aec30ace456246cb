"""``${name}`` in scripts: replaced inside quotes only, so a value can never become anything but part of a
string or a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.catalog.errors import PenstockError, SourceText, Span
from penstock.catalog.name_suggestions import did_you_mean

_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def substitute(text: str, values: Mapping[str, str], file: str | None = None) -> str:
    """Return a script with its variables replaced; CLI-6110 for one that has no value, CLI-6111 for a
    value of several lines.
    """
    if "${" not in text:
        return text

    def token(match: re.Match[str]) -> str:
        quote = match[0][0]
        if quote not in "'\"`":
            return match[0]

        def value(variable: re.Match[str]) -> str:
            name = variable[1]
            start = match.start() + variable.start()
            where = {"span": Span(start, start + len(variable[0])), "source": SourceText(text, file)}
            if name not in values:
                hint = did_you_mean(name, values, others=True) or f"pass --var {name}=value"
                raise PenstockError("CLI-6110", f"variable {name} has no value", hint=hint, **where)  # type: ignore[arg-type]  # two named facts
            if "\n" in values[name]:
                raise PenstockError("CLI-6111", f"the value of variable {name} has several lines", **where)  # type: ignore[arg-type]
            return values[name].replace(quote, quote * 2)

        return _VARIABLE.sub(value, match[0])

    return _TOKEN.sub(token, text)
