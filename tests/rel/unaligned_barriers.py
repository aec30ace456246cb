"""The command line with a planted bug: the first of several barriers is taken for all of them, which makes the guarantee at least once."""

from __future__ import annotations

import sys

from engine.barriers import Alignment
from repl.cli import main


class Hasty(Alignment):
    """Lets a checkpoint through at the first barrier and ignores the others."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self._last = 0

    def on_barrier(self, channel: int, checkpoint_id: int) -> int | None:
        if checkpoint_id <= self._last:
            return None
        self._last = checkpoint_id
        return checkpoint_id


if __name__ == "__main__":
    import engine.input_gate

    engine.input_gate.Alignment = Hasty
    sys.exit(main())
