"""What a statement says of the rows it has changed."""

from __future__ import annotations

import pytest

from penstock.engine.connectors.row_replacement.replaced_table import RowCounts


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        (RowCounts(), "no row changed"),
        (RowCounts(1), "1 row updated"),
        (RowCounts(2, 1), "2 rows updated, 1 deleted"),
        (RowCounts(0, 0, 1_000), "1,000 rows inserted"),
    ],
)
def test_rows_are_counted_in_words(counts: RowCounts, text: str) -> None:
    assert str(counts) == text
