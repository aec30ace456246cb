"""The target over a user's sink object: epochs are penstock's, the rows and their epoch are stored by the
user's code.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from penstock.catalog.connectors.registry import written_changes
from penstock.catalog.errors import PenstockError
from penstock.engine.api.epoch_target import EpochTarget, EpochWriter, StagedForm
from penstock.engine.api.sink import SinkRequest
from penstock.engine.connectors.epoch_sink import EpochSink
from penstock.engine.connectors.python.lookup import PythonConnectors, user_options
from penstock.engine.connectors.python.user_errors import users_own

_FORMS = {"append": StagedForm.INSERTS, "upsert": StagedForm.UPSERTS, "retract": StagedForm.CHANGES}


class PythonTarget(EpochTarget):
    """Calls the user's object. Writers are known to it by their names, which no other job has."""

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a sink that is written in Python has a table"
        sink = request.services.get(PythonConnectors).sink(request.table)
        self._name = f"Python sink {sink.name}"
        self.form = _FORMS[written_changes(request.table)]
        with users_own(f"{self._name}: making it"):
            self._sink = sink.make(user_options(request.table), request.schema.to_arrow())

    def fence(self, writers: list[EpochWriter]) -> None:
        if hasattr(self._sink, "fence"):
            with users_own(f"{self._name}: fence"):
                self._sink.fence([writer.name for writer in writers])

    def last_committed(self, writer: EpochWriter) -> int:
        with users_own(f"{self._name}: last_committed"):
            epoch = self._sink.last_committed(writer.name)
        if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 0:
            raise PenstockError(
                "DAT-5604",
                f"{self._name}: last_committed returned {epoch!r:.60}, not the number of an epoch",
                hint="return the epoch that commit stored last for this writer, 0 when there is none",
            )
        return epoch

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        with users_own(f"{self._name}: commit"):
            self._sink.commit(writer.name, epoch, rows)

    def retire(self, writer: EpochWriter) -> None:
        if hasattr(self._sink, "retire"):
            with users_own(f"{self._name}: retire"):
                self._sink.retire(writer.name)

    def close(self) -> None:
        if hasattr(self._sink, "close"):
            with users_own(f"{self._name}: close"):
                self._sink.close()


def python_sink(request: SinkRequest) -> EpochSink:
    """Return the writer of one subtask of a Python sink."""
    return EpochSink(request, PythonTarget(request))
