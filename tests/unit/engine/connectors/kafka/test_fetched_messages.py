"""Columns of messages are cut together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.connectors.kafka.fetched_messages import FetchedMessages, PartitionError


def test_a_cut_has_the_first_messages_and_no_error() -> None:
    values = pa.array([b"a", None, b"c"], pa.binary())
    whole = FetchedMessages(
        values, np.arange(3), keys=values, error=PartitionError("_PARTITION_EOF", "end", 3)
    )
    cut = whole.cut(2)
    assert (cut.values.to_pylist(), cut.offsets.tolist(), len(cut)) == ([b"a", None], [0, 1], 2)
    assert cut.keys.to_pylist() == [b"a", None]
    assert cut.error is None
    assert whole.error is not None
    assert whole.error.is_end
