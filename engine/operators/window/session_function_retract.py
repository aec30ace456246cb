"""SESSION as a table of rows that may be taken back until their session is over; what is left then is
given once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.operator import Context, KeyedState, Output, Rest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.window.session_function import SessionTableOperator
from penstock.engine.operators.window.window_aggregate import WINDOW_TIME_US
from penstock.engine.state.groups.session_rows import SessionRows
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.windowing.late_row_filter import in_time


class SessionTableUpdatesOperator(SessionTableOperator):
    """Rows behind their split's watermark, and rows taken back behind it, are late: dropped and counted."""

    added_states = frozenset()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        window = self._window
        self._keys = KeyIndex([self._input.field(key).type for key in window.partition_keys])
        groups = context.key_groups.max_parallelism
        self._held = SessionRows(
            self._input, window.partition_keys, window.time_column, window.size_us, self._keys, groups
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._held}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        batch = in_time(batch, self._window.time_column, self._watermark_us, 0, self._metrics)
        batch = self._held.consolidated(batch, keep=True)
        if batch.num_rows:
            slots = self._keys.lookup_or_insert(
                [batch.rows.column(key) for key in self._window.partition_keys], batch.num_rows
            )
            self._keys.remove(self._held.change(batch, slots, np.zeros(batch.num_rows, np.int64)))
            self._metrics.state_entries = len(self._held)

    def _pass_time(self, time_us: int, out: Output) -> Rest:
        yield from self._go_on(time_us, out)

    def _close(self, time_us: int, out: Output) -> Rest:
        ended = self._held.ended(time_us)
        if len(ended):
            columns = list(self._held.store.take(ended.ids).columns)
            for times, field in zip(
                (ended.starts, ended.ends, ended.ends - WINDOW_TIME_US), list(self._schema)[-3:], strict=True
            ):
                columns.append(array_of(times[ended.of]).view(field.type))
            rows = Batch(
                pa.RecordBatch.from_arrays(columns, schema=self._schema), self._held.store.weights(ended.ids)
            )
            for number, piece in enumerate(rows.single_rows()):
                if number:
                    yield
                out.collect(piece)
            self._metrics.windows_closed += len(ended)
        self._held.forget(ended, time_us)
        self._metrics.state_entries = len(self._held)
