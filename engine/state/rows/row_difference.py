"""The difference of two sets of rows as changes, equal rows cancelled."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.index.key_index import KeyIndex


def difference(before: Batch, after: Batch) -> Batch | None:
    """Return what must be taken back and what must be added, a row's changes in turn; None when nothing
    changed.
    """
    rows = pa.concat_batches([before.rows, after.rows])
    changes = np.concatenate([-_weights(before), _weights(after)])
    slots = KeyIndex(rows.schema.types).lookup_or_insert(rows.columns, rows.num_rows)
    _, first, inverse = np.unique(slots, return_index=True, return_inverse=True)
    net = np.zeros(first.size, np.int64)
    np.add.at(net, inverse, changes)
    changed = np.flatnonzero(net)
    if not changed.size:
        return None
    changed = changed[np.lexsort((first[changed], net[changed] > 0))]
    weights = net[changed]
    return Batch(rows.take(array_of(first[changed])), None if (weights == 1).all() else weights)


def _weights(batch: Batch) -> np.ndarray:
    return np.ones(batch.num_rows, np.int64) if batch.weights is None else batch.weights
