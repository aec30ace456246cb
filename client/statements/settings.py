"""SET and RESET."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client.result import Result, note_result, text_rows
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.session import Session


def change_settings(session: Session, node: nodes.Set | nodes.Reset) -> Result:
    """Set, show or reset settings."""
    settings = session.settings
    match node:
        case nodes.Reset(key):
            settings.reset(key, node.key_span)
            session.serve_metrics(settings)
            return note_result(
                "all settings have their defaults again" if key is None else f"{key} has its default again"
            )
        case nodes.Set(None, _):
            return all_settings(session)
        case nodes.Set(key, None):
            declared = settings.declaration(key or "", node.key_span)
            return text_rows(["key", "value"], [(declared.key, settings.shown(declared.key))])
        case nodes.Set(key, value):
            changed = settings.copy()
            changed.set(key or "", value or "", node.value_span, key_span=node.key_span)
            session.serve_metrics(changed)
            settings.set(key or "", value or "")
            return note_result(f"{key} = {settings.shown(key or '')}")
    raise AssertionError(node)


def all_settings(session: Session, like: str | None = None) -> Result:
    """Return every setting with its value, where that comes from, and what it is for."""
    from penstock.client.statements.show import matches

    settings = session.settings
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
