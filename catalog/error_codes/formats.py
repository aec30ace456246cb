"""Causes and cures of errors of message formats."""

from __future__ import annotations

FORMATS: dict[str, tuple[str, str]] = {
    "DAT-5201": (
        "A table of raw messages has no column, or several.",
        "Declare one column for the value; others can be METADATA columns.",
    ),
}
