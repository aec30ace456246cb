"""The command line with a planted bug: keyed state is not restored, as if there were no checkpoints of it."""

from __future__ import annotations

import sys

from penstock.engine.checkpoint.restore import Restorer
from penstock.repl.cli import main

if __name__ == "__main__":
    Restorer._restore_keyed = lambda self, chained: None
    sys.exit(main())
