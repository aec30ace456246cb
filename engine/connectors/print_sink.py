"""The print sink: one line per change, to the program's stream."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.registry import option
from penstock.catalog.types import Variant, holds
from penstock.engine.api.arrow_numpy import array_of, texts
from penstock.engine.api.print_stream import PrintStream, to_stdout
from penstock.engine.api.sink import DirectSink, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import OPS, change_rows
from penstock.engine.formats.json_text import json_tokens
from penstock.engine.formats.text_conversion import to_text
from penstock.engine.formats.variant_columns import stored_column


class PrintSink(DirectSink):
    """Writes lines such as ``+I[1, abc, NULL]``; with several subtasks, each line begins with the subtask's
    number.
    """

    def __init__(self, request: SinkRequest) -> None:
        identifier = str(option(request.table, "print-identifier")) if request.table is not None else ""
        words = [identifier] if identifier else []
        # as Flink prints: ``identifier> 3> +I[..]``
        words += [f"{request.subtask + 1}"] if request.parallelism > 1 else []
        self._prefix = "> ".join((*words, ""))
        self._key = request.upsert_key
        # a VARIANT inside others is JSON already; alone it is a text
        kinds = [field.type for field in request.schema.fields]
        self._nested = {i: k for i, k in enumerate(kinds) if holds(k, Variant) and not isinstance(k, Variant)}
        try:
            # a session may print elsewhere: into a cell, or to the coordinator of a worker
            self._write = request.services.get(PrintStream).write
        except KeyError:
            self._write = to_stdout

    def write(self, batch: Batch) -> None:
        rows, ops = change_rows(batch, self._key)
        values = [
            # arrays, maps and rows as JSON, everything else as text
            pc.fill_null(to_text(c) if not pa.types.is_nested(c.type) else self._json(i, c), "NULL")
            for i, c in enumerate(rows.columns)
        ]
        lines = pc.binary_join_element_wise(*values, ", ") if values else pa.array([""] * rows.num_rows)
        named = texts(list(OPS)).take(array_of(ops))
        lines = pc.binary_join_element_wise(self._prefix, named, "[", lines, "]\n", "")
        self._write("".join(lines.to_pylist()))

    def _json(self, index: int, column: pa.Array) -> pa.Array:
        kind = self._nested.get(index)
        return json_tokens(column if kind is None else stored_column(column, kind, False))
