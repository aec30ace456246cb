"""The command line with a planted bug: every sink commits what it has prepared at once, before the
checkpoint it belongs to is complete.
"""

from __future__ import annotations

import sys

from penstock.engine.api.operator import Output
from penstock.engine.operators.sink import SinkOperator
from penstock.repl.cli import main
from tests.fault_injection.log_sink import use_log

_prepare = SinkOperator.before_barrier


def _prepare_and_commit(operator: SinkOperator, checkpoint_id: int, out: Output) -> None:
    _prepare(operator, checkpoint_id, out)
    for pending in operator._pending:
        operator._writer.commit(pending["items"])


if __name__ == "__main__":
    use_log()
    SinkOperator.before_barrier = _prepare_and_commit  # type: ignore[method-assign]
    sys.exit(main())
