"""Functions that are allowed with OVER only: their names, how they are called and one sentence each."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class WindowFunction:
    """A function of the rows around a row. Aggregates are allowed with OVER too and are declared with the
    aggregates.
    """

    name: str
    usage: str
    help: str


WINDOW_FUNCTIONS = (
    WindowFunction(
        "row_number",
        "row_number()",
        "The number of the row in its partition, from 1; ties are ordered by all columns.",
    ),
    WindowFunction(
        "rank", "rank()", "One more than the rows that come before; rows equal in the order have one rank."
    ),
    WindowFunction("dense_rank", "dense_rank()", "One more than the different ranks that come before."),
    WindowFunction(
        "ntile",
        "ntile(n)",
        "Which of n parts of the partition has the row, from 1; the first are larger.",
    ),
    WindowFunction(
        "percent_rank",
        "percent_rank()",
        "(rank() - 1) / (rows of the partition - 1); 0 for one row.",
    ),
    WindowFunction(
        "cume_dist",
        "cume_dist()",
        "The share of the partition that is not behind the row in the order.",
    ),
    WindowFunction(
        "lag",
        "lag(x[, n[, default]])",
        "x of the row n rows before (1 by default), the default where there is none.",
    ),
    WindowFunction(
        "lead",
        "lead(x[, n[, default]])",
        "x of the row n rows after (1 by default), the default where there is none.",
    ),
    WindowFunction("first_value", "first_value(x)", "x of the first row of the frame."),
    WindowFunction("last_value", "last_value(x)", "x of the last row of the frame."),
    WindowFunction(
        "nth_value",
        "nth_value(x, n) [FROM FIRST | FROM LAST] [IGNORE NULLS]",
        "x of the n-th row of the frame, NULL where it has fewer.",
    ),
)
