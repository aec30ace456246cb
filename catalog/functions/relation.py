"""Functions that the grammar knows in FROM: windows of rows, and files."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class RelationFunction:
    """A function of FROM with a grammar of its own: how it is called, and what its rows are."""

    name: str
    usage: str
    help: str


WINDOW_TABLE_FUNCTIONS = (
    RelationFunction(
        "tumble",
        "TUMBLE(TABLE t, DESCRIPTOR(ts), size[, offset])",
        "Each row with its window; windows of one size follow each other.",
    ),
    RelationFunction(
        "hop",
        "HOP(TABLE t, DESCRIPTOR(ts), slide, size[, offset])",
        "Each row once per window; a window of one size begins every slide.",
    ),
    RelationFunction(
        "cumulate",
        "CUMULATE(TABLE t, DESCRIPTOR(ts), step, size[, offset])",
        "Each row once per window; windows of one start end a step apart, up to the size.",
    ),
    RelationFunction(
        "session",
        "SESSION(TABLE t [PARTITION BY k], DESCRIPTOR(ts), gap)",
        "Each row with its window, which ends when no row of the key comes for the gap.",
    ),
)
FILE_TABLE_FUNCTIONS = (
    RelationFunction(
        "read_csv",
        "read_csv('path'[, option => value, ..])",
        "The rows of csv files; * ? [..] and ** in the path match names.",
    ),
    RelationFunction(
        "read_json",
        "read_json('path'[, option => value, ..])",
        "The rows of files of JSON objects: one a line, over several lines, or in an array.",
    ),
    RelationFunction(
        "read_parquet", "read_parquet('path'[, option => value, ..])", "The rows of parquet files."
    ),
    RelationFunction("read_arrow", "read_arrow('path'[, option => value, ..])", "The rows of Arrow files."),
)
