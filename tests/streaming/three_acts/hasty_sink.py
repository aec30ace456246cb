"""The command line with a planted bug: its file sink publishes rows as they come, without waiting for a
checkpoint.
"""

from __future__ import annotations

import sys

from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors import registry
from penstock.engine.connectors.filesystem.sink import FilesystemSink
from penstock.repl.cli import main


class HastySink(FilesystemSink):
    """Commits before anything is durable."""

    def write(self, batch: Batch) -> None:
        super().write(batch)
        self.commit(self.prepare(0))


if __name__ == "__main__":
    registry.SINKS["filesystem"] = HastySink
    sys.exit(main())
