"""SET and RESET, and the LIKE patterns that SET and SHOW filter names by."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.catalog.settings import without_effect
from penstock.client.results.result import Result, note_result, text_rows
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.session_state import SessionState


def change_settings(state: SessionState, node: nodes.Set | nodes.Reset) -> Result:
    """Set, show or reset settings."""
    settings = state.settings
    match node:
        # RESET, RESET 'key'
        case nodes.Reset(key):
            settings.reset(key, node.key_span)
            state.serve_metrics(settings)
            return note_result(
                "all settings have their defaults again" if key is None else f"{key} has its default again"
            )
        # SET
        case nodes.Set(None, _):
            return all_settings(state)
        # SET 'key'
        case nodes.Set(key, None):
            declared = settings.declaration(key or "", node.key_span)
            return text_rows(["key", "value"], [(declared.key, settings.shown(declared.key))])
        # SET 'key' = 'value', a key of Flink that has nothing to steer here
        case nodes.Set(key, _) if (why := without_effect(key or "")) is not None:
            return note_result(f"{key} has no effect: {why}")
        # SET 'key' = 'value'
        case nodes.Set(key, value):
            changed = settings.copy()
            changed.set(key or "", value or "", node.value_span, key_span=node.key_span)
            # on a copy first: when the port is not free the setting has not changed
            state.serve_metrics(changed)
            settings.set(key or "", value or "", node.value_span, key_span=node.key_span)
            return note_result(f"{key} = {settings.shown(key or '')}")
    raise AssertionError(node)


def all_settings(state: SessionState, like: str | None = None) -> Result:
    """Return every setting with its value, where that comes from, and what it is for."""
    settings = state.settings
    rows = [
        (
            key,
            settings.shown(key),
            "set" if settings.is_set(key) else "default",
            settings.declaration(key).help,
        )
        for key, _ in settings.items()
        if matches(key, like)
    ]
    return text_rows(["key", "value", "from", "help"], rows)


def matches(name: str, like: str | None) -> bool:
    """Return whether a name matches a LIKE pattern (no pattern: always), without case."""
    if like is None:
        return True
    pattern = "".join({"%": ".*", "_": "."}.get(character, re.escape(character)) for character in like)
    return re.fullmatch(pattern, name, re.IGNORECASE | re.DOTALL) is not None
