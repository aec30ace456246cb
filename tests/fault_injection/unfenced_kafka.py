"""The command line with a planted bug: each process has transactional ids of its own, so that none fences an
earlier one off, and none learns of a later one from its lock.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from penstock.engine.connectors.kafka.native_producer import NativeProducer
from penstock.repl.cli import main
from tests.fault_injection.unaware import forget_the_lock

_make = NativeProducer.__init__


def _make_unfenced(producer: NativeProducer, topic: str, properties: dict[str, str], *rest: Any) -> None:
    if name := properties.get("transactional.id"):
        properties = properties | {"transactional.id": f"{name}-{os.getpid()}"}
    _make(producer, topic, properties, *rest)


if __name__ == "__main__":
    forget_the_lock()
    NativeProducer.__init__ = _make_unfenced  # type: ignore[method-assign]
    sys.exit(main())
