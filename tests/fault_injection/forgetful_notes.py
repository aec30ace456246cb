"""The command line with a planted bug: a stream of JetStream does not know which epochs it has, so what a
checkpoint holds is written again after each restore.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from penstock.engine.api.epoch_target import EpochWriter
from penstock.engine.connectors.nats.target import NatsTarget
from penstock.repl.cli import main

_noted = NatsTarget._noted


def _without_epochs(target: NatsTarget, writer: EpochWriter) -> Any:
    return replace(_noted(target, writer), epoch=0, open=0, stored=0)


if __name__ == "__main__":
    NatsTarget._noted = _without_epochs  # type: ignore[method-assign]
    sys.exit(main())
