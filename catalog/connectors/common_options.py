"""Options that the tables of every connector take, beside those that their connector declares: subtasks of
sources and sinks, and the pace of sources.
"""

from __future__ import annotations

from penstock.catalog.connectors.option import Option, OptionKind

SCAN_PARALLELISM = "scan.parallelism"
SINK_PARALLELISM = "sink.parallelism"
SCAN_RATE = "scan.rows-per-second"
ALIGNMENT_DRIFT = "scan.watermark.alignment.max-drift"
ALIGNMENT_GROUP = "scan.watermark.alignment.group"
ALIGNMENT_INTERVAL = "scan.watermark.alignment.update-interval"

# Keys are Flink's where Flink has them.
SCAN_OPTIONS = (
    Option(
        SCAN_PARALLELISM,
        OptionKind.INT,
        None,
        "how many subtasks read the table, instead of 'parallelism.default'; the query keeps its own",
        minimum=1,
    ),
    Option(
        SCAN_RATE,
        OptionKind.INT,
        0,
        "how many rows all subtasks together read in a second at most (0: as fast as it goes)",
        minimum=0,
    ),
    Option(
        ALIGNMENT_DRIFT,
        OptionKind.DURATION,
        None,
        "how far a split may be ahead of the slowest one in event time: it waits then",
        minimum=0,
    ),
    Option(
        ALIGNMENT_GROUP,
        help="sources of one job with the same group are aligned with each other; without it each by itself",
    ),
    Option(
        ALIGNMENT_INTERVAL,
        OptionKind.DURATION,
        1000,
        "how often subtasks compare how far they are; a split without rows for so long is not waited for",
        minimum=1,
    ),
)
SINK_OPTIONS = (
    Option(
        SINK_PARALLELISM,
        OptionKind.INT,
        None,
        "how many subtasks write the table, instead of as many as its query has; changes of one key stay in "
        "order",
        minimum=1,
    ),
)
IMMATERIAL = frozenset(option.key for option in (*SCAN_OPTIONS, *SINK_OPTIONS))
"""Keys that change no row: a job resumes its state with other values of them."""
