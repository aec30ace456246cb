"""Changes of weights as rows with an op each: updates of a key are pairs."""

from __future__ import annotations

import numpy as np

from penstock.engine.changelog.row_kinds import OPS, change_rows
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
