"""The page of other engines' functions: what each of them is called here, or why it is not there.

``python -m tests.sql.functions_of_others.page docs`` writes it.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from penstock.catalog.functions.composed import COMPOSED
from penstock.catalog.functions.registry import function_kinds
from penstock.planner.binder.expressions.function_rewrites import CAST_FUNCTIONS
from penstock.planner.binder.expressions.session_functions import SESSION_FUNCTIONS
from penstock.planner.logical.over import OVER_ONLY
from tests.sql.functions_of_others.names import FLINK, SPARK, WHY_NOT

GRAMMAR = {
    "extract",
    "date_part",
    "datepart",
    "grouping",
    "grouping_id",
    "window",
    "if",
    "mod",
    "element",
    "proctime",
    "current_watermark",
}
"""Names that the grammar or the binder knows, and no list of functions."""
KNOWN = {name for name, _ in function_kinds()} | set(CAST_FUNCTIONS) | OVER_ONLY | GRAMMAR | SESSION_FUNCTIONS
_HEAD = """# Functions of Spark and of Flink

Written by `python -m tests.sql.functions_of_others.page docs`; do not edit. [FUNCTIONS.md](FUNCTIONS.md) has
every function of the registry with an example.

"""


def count(names: list[str]) -> tuple[int, int]:
    """Return how many of an engine's functions are ours, and how many there are."""
    return sum(name in KNOWN for name in names), len(names)


def page() -> str:
    """Return the page's text."""
    counts = [(engine, *count(names)) for engine, names in (("Spark 4", SPARK), ("Flink 2.3", FLINK))]
    lines = [f"Of {engine}'s {total} functions {ours} are ours." for engine, ours, total in counts]
    text = (
        _HEAD + " ".join(lines) + "\n\n## Written with other functions\n\n| call | what it is |\n|---|---|\n"
    )
    text += "".join(
        f"| `{function.usage.replace('|', chr(92) + '|')}` | {function.help} |\n"
        for function in COMPOSED.values()
    )
    text += "\n## Not ours\n\n| function | of | why not, or what to write |\n|---|---|---|\n"
    for name in sorted(WHY_NOT):
        engines = [engine for engine, names in (("Spark", SPARK), ("Flink", FLINK)) if name in names]
        text += f"| `{name}` | {', '.join(engines)} | {WHY_NOT[name]} |\n"
    text += "\n## Ours by the same name\n\n| letter | functions |\n|---|---|\n"
    both = sorted(name for name in {*SPARK, *FLINK} if name in KNOWN)
    for letter, names in groupby(both, lambda name: name[0]):
        text += f"| {letter} | {' '.join(f'`{name}`' for name in names)} |\n"
    return text


if __name__ == "__main__":
    Path(sys.argv[1], "FUNCTIONS_OF_OTHERS.md").write_text(page(), encoding="utf-8")
