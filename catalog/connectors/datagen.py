"""What the datagen connector may be told: how many rows, how fast, and what each column holds."""

from __future__ import annotations

from penstock.catalog.connectors.option import Option, OptionKind

FIELD_KINDS = ("random", "sequence", "now")

DATAGEN_OPTIONS = (
    Option(
        "rows-per-second",
        OptionKind.INT,
        10_000,
        "how fast rows come in all, bursts of a second apart (0: as fast as it goes)",
        minimum=0,
    ),
    Option(
        "number-of-rows",
        OptionKind.INT,
        None,
        "how many rows there are in all; without it rows never end",
        minimum=0,
    ),
    Option("seed", OptionKind.INT, 0, "another seed, other random values"),
    Option(
        "splits",
        OptionKind.INT,
        1,
        "how many parts rows are dealt into, so that as many subtasks can generate",
        minimum=1,
    ),
    Option(
        "fields.*.kind",
        OptionKind.ENUM,
        None,
        "random values, a sequence, or the time of generation",
        FIELD_KINDS,
    ),
    Option("fields.*.min", OptionKind.STRING, None, "least random value"),
    Option("fields.*.max", OptionKind.STRING, None, "greatest random value"),
    Option("fields.*.start", OptionKind.STRING, None, "first value of a sequence"),
    Option("fields.*.end", OptionKind.STRING, None, "last value of a sequence; rows end with it"),
    Option(
        "fields.*.step",
        OptionKind.DURATION,
        None,
        "how far apart the times of two successive rows are",
        minimum=0,
    ),
    Option("fields.*.length", OptionKind.INT, 16, "length of a random string", minimum=0),
    Option("fields.*.values", OptionKind.STRING, None, "comma-separated values to choose from"),
)
