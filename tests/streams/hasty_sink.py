"""The command line with a planted bug: its file sink publishes rows as they come, without waiting for a checkpoint."""

from __future__ import annotations

import sys

from engine.connectors import build
from engine.connectors.filesystem_sink import FilesystemSink
from engine.elements import Batch
from repl.cli import main


class HastySink(FilesystemSink):
    """Commits before anything is durable."""

    def write(self, batch: Batch) -> None:
        super().write(batch)
        self.commit(self.prepare(0))


if __name__ == "__main__":
    build.SINKS["filesystem"] = HastySink
    sys.exit(main())
