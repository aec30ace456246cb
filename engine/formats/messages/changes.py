"""Changes out: rows with weights as envelopes of Debezium, Maxwell, Canal and GoldenGate, a message a row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.engine.api.arrow_numpy import array_of, texts
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import DELETE, INSERT, with_op_column
from penstock.engine.formats.debezium import debezium_lines
from penstock.engine.formats.file_writers import not_text
from penstock.engine.formats.json_text import json_lines
from penstock.engine.formats.messages.text_messages import line_values


class DebeziumJsonSerializer:
    """Encodes changes as Debezium's JSON: a row of weight +1 is created, one of -1 is deleted. Flink writes
    an update in the same way, as a deletion and a creation.
    """

    def __init__(self, form: MessageFormat) -> None:
        self._with_schema = bool(form.option("debezium-json.schema-include"))

    def serialize(self, batch: Batch) -> pa.Array:
        rows = with_op_column(batch.rows, row_ops(batch))
        try:
            return line_values(debezium_lines(rows, self._with_schema))
        except pa.ArrowInvalid:
            raise not_text(batch.rows, "debezium-json", "a message") from None


# around the object of a row that is created, and of one that is deleted
_ENVELOPES = {
    "maxwell-json": (('{"data":', ',"type":"insert"}\n'), ('{"data":', ',"type":"delete"}\n')),
    "canal-json": (('{"data":[', '],"type":"INSERT"}\n'), ('{"data":[', '],"type":"DELETE"}\n')),
    "ogg-json": (
        ('{"before":null,"after":', ',"op_type":"I"}\n'),
        ('{"before":', ',"after":null,"op_type":"D"}\n'),
    ),
}


class EnvelopeSerializer:
    """Encodes changes as Maxwell, Canal or GoldenGate writes them: an update is a deletion and a creation."""

    def __init__(self, form: MessageFormat) -> None:
        self._format = form.name
        (created, deleted) = _ENVELOPES[form.name]
        self._heads, self._tails = texts([created[0], deleted[0]]), texts([created[1], deleted[1]])

    def serialize(self, batch: Batch) -> pa.Array:
        which = array_of((row_ops(batch) == DELETE).astype(np.int64))
        try:
            objects = pc.utf8_rtrim(json_lines(batch.rows), characters="\n")
        except pa.ArrowInvalid:
            raise not_text(batch.rows, self._format, "a message") from None
        lines = pc.binary_join_element_wise(self._heads.take(which), objects, self._tails.take(which), "")
        return line_values(lines)


def row_ops(batch: Batch) -> np.ndarray:
    """Return the op of each row: an insertion or a deletion. Weights must be +1 or -1."""
    if batch.weights is None:
        return np.full(batch.num_rows, INSERT, np.int8)
    assert (np.abs(batch.weights) == 1).all(), "a message is one change: change_rows() makes them of weights"
    return np.where(batch.weights > 0, INSERT, DELETE).astype(np.int8)
