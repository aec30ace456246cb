"""Changes of weights as rows with an op each: updates of a key are pairs."""

from __future__ import annotations

import numpy as np

from penstock.engine.changelog.row_kinds import OPS, change_rows, keyed_rows
from tests.unit.engine.connectors.sinks import changes


def test_change_rows_pair_updates_of_a_key() -> None:
    batch = changes((1, "new", 1), (2, "gone", -1), (1, "old", -1), (3, "x", 2), (None, "n", 1))
    rows, ops = change_rows(batch, (0,))
    assert list(zip(np.array(OPS)[ops], rows.column(1).to_pylist(), strict=True)) == [
        ("-U", "old"),
        ("+U", "new"),
        ("-D", "gone"),
        ("+I", "x"),
        ("+I", "x"),
        ("+I", "n"),
    ]
    assert [OPS[op] for op in change_rows(batch, None)[1]] == ["+I", "-D", "-D", "+I", "+I", "+I"]


def test_of_upserts_the_last_change_of_a_key_counts_and_none_cancel() -> None:
    """Summed, the deletion would leave the first row of its key."""
    batch = changes((1, "one", 1), (1, "two", 1), (1, "two", -1), (2, "x", 1))
    rows, deleted = keyed_rows(batch, (0,), upserts=True)
    assert rows.column(1).to_pylist() == ["one", "two", "two", "x"]
    assert deleted.tolist() == [False, False, True, False]
    rows, deleted = keyed_rows(changes((1, "old", -1), (1, "new", 1)), (0,), upserts=False)
    assert rows.column(1).to_pylist() == ["old", "new"] and deleted.tolist() == [True, False]
