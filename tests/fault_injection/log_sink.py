"""The command line with a sink into a test's log: a table of files whose path ends with ``.log`` is one. A
transaction per epoch and subtask.
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.operator import KeyedState
from penstock.engine.api.sink import Committable, SinkRequest, SinkWriter
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors import registry
from penstock.repl.cli import main
from tests.fault_injection.log import Log, Refused


class LogSink:
    """Writes records as they come, hidden until their transaction is committed."""

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None
        self._request = request
        self._log = Log(Path(request.table.options["path"]))
        self._txn: int | None = None
        self._epoch = 0

    def keyed_states(self) -> dict[str, KeyedState]:
        return {}

    def on_restored(self) -> None:
        """Nothing: restored items have been committed."""

    def recover(self, pending: list[Committable]) -> None:
        self._epoch = self._log.take_over(
            self._request.parallelism, self._request.subtask, [item["txn"] for item in pending]
        )

    def write(self, batch: Batch) -> None:
        self._txn = self._log.append(
            self._request.subtask, self._epoch, self._txn, batch.rows.column(0).to_pylist()
        )

    def prepare(self, checkpoint_id: int) -> list[Committable]:
        failpoint("S2")
        txn, self._txn = self._txn, None
        return [] if txn is None else [{"txn": txn, "checkpoint": checkpoint_id}]

    def commit(self, items: list[Committable]) -> None:
        for item in items:
            self._end(item, "committed")
            failpoint("S5")

    def completed(self, checkpoint_id: int) -> None:
        """Who reads the log knows its transactions only."""

    def abort(self, items: list[Committable]) -> None:
        for item in items:
            self._end(item, "aborted")

    def _end(self, item: Committable, state: str) -> None:
        try:
            self._log.end(item["txn"], state)
        except Refused as error:
            message = f"checkpoint {item['checkpoint']}: the log refuses transaction {item['txn']}"
            raise PenstockError("DAT-4707", message, detail=str(error), kind=Kind.USER) from error

    def ready(self) -> bool:
        return True

    def end(self) -> None:
        """What is written is prepared by the final checkpoint."""

    def close(self) -> None:
        self._log.close()


def use_log() -> None:
    """Let tables of files whose path ends with ``.log`` be logs."""
    files = registry.SINKS["filesystem"]

    def made(request: SinkRequest) -> SinkWriter:
        is_log = request.table is not None and request.table.options["path"].endswith(".log")
        return LogSink(request) if is_log else files(request)

    registry.SINKS["filesystem"] = made


if __name__ == "__main__":
    use_log()
    sys.exit(main())
