"""LIKE patterns over names, as SHOW .. LIKE has them. Its own file: SHOW, SET and SHOW METRICS use it."""

from __future__ import annotations

import re


def matches(name: str, like: str | None) -> bool:
    """Return whether a name matches a LIKE pattern (no pattern: always), without case."""
    if like is None:
        return True
    pattern = "".join({"%": ".*", "_": "."}.get(character, re.escape(character)) for character in like)
    return re.fullmatch(pattern, name, re.IGNORECASE | re.DOTALL) is not None
