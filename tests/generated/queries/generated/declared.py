"""What the language declares unsupported, and how many generated queries may meet it: a number that only
goes down.
"""

from __future__ import annotations

import re

UNSUPPORTED: dict[str, tuple[str, int]] = {}


def declared(told: str) -> str | None:
    """The declared limit an outcome stands for, None when it is a failure."""
    return next((name for name, (pattern, _) in UNSUPPORTED.items() if re.search(pattern, told)), None)
