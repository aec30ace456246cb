"""Server-sent events: what a stream of the API yields, and its text."""

from __future__ import annotations

import json
from typing import Any

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class StreamEvent:
    """One event: its name and its JSON. ``pause``: nothing is newer, so the stream is asked again later."""

    name: str
    data: Any
    pause: bool = False

    @property
    def text(self) -> str:
        """The event as the format writes it. JSON has no line ends, so its data is one line."""
        return f"event: {self.name}\ndata: {json.dumps(self.data, separators=(',', ':'))}\n\n"
