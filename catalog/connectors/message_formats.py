"""The formats of the values of messages, and their options, shared by the connectors of message queues."""

from __future__ import annotations

from penstock.catalog.connectors.option import Option

MESSAGE_FORMATS = ("json",)
# Each value is a change: an insertion, an update or a deletion.
CHANGELOG_MESSAGE_FORMATS: frozenset[str] = frozenset()
MESSAGE_FORMAT_OPTIONS: tuple[Option, ...] = ()
