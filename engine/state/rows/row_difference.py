"""The difference of two sets of rows as changes, equal rows cancelled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.batch_concat import all_weights, concat_batches, take_rows_from
from penstock.engine.state.index.key_index import KeyIndex


def difference(before: Sequence[Batch], after: Sequence[Batch]) -> list[Batch]:
    """Return what must be taken back and then what must be added, none when nothing changed: as one batch,
    or as few as Arrow can hold.
    """
    if not (before or after):
        return []
    pieces = concat_batches([*before, *after])  # one look-up and one take for both sides, not one for each
    first, net = net_weights(pieces, np.concatenate([-all_weights(before), all_weights(after)]))
    changed = np.flatnonzero(net)
    changed = changed[np.lexsort((first[changed], net[changed] > 0))]
    weights = net[changed]
    return take_rows_from(pieces, first[changed], None if (weights == 1).all() else weights)


def net_weights(pieces: Sequence[Batch], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first place, counted through all pieces, of each distinct row, and the sum of the weights
    of all that equal it, which may be 0; both int64.
    """
    if not weights.size:
        return weights, weights
    index = KeyIndex(pieces[0].rows.schema.types)
    slots = np.concatenate([index.lookup_or_insert(p.rows.columns, p.num_rows) for p in pieces])
    _, first, inverse = np.unique(slots, return_index=True, return_inverse=True)
    net = np.zeros(first.size, np.int64)
    np.add.at(net, inverse, weights)
    return first, net
