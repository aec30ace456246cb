"""The page of first-hour mistakes, made of the golden cases: ``python -m tests.sql.first_hour.page docs``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.harness.case_files import case_files
from tests.harness.golden import GoldenCase, read_cases
from tests.sql.first_hour.sample import MENDED, TABLES

SCRIPTS = Path(__file__).parent / "scripts"
TOPICS = {
    "files": "Files",
    "tables": "Tables and INSERT",
    "queries": "Queries",
    "streams": "Windows and streams",
    "dialects": "Spellings of other engines",
    "shell": "Command line and shell",
}
"""The files of cases in the order of the page, with their headings."""
_HEAD = """# Mistakes of the first hour

Written by `python -m tests.sql.first_hour.page docs`; do not edit.
Each entry is a statement with a mistake, the error of penstock, and the statement that its hint leads to.
A test runs both: the first fails with this error, the second succeeds.
{count} mistakes are here. [ERRORS.md](ERRORS.md) lists every error code.

The tables are these, and `orders.csv` has the columns of `orders`:

```
{tables}
```
"""


def page() -> str:
    """Return the page as Markdown."""
    cases = {topic: read_cases(SCRIPTS / topic) for topic in TOPICS}
    parts = [_HEAD.format(count=sum(map(len, cases.values())), tables=TABLES.strip())]
    for topic, heading in TOPICS.items():
        parts += [f"## {heading}\n", *map(_entry, cases[topic])]
    return "\n".join(parts)


def _entry(case: GoldenCase) -> str:
    typed, mended = case.input.split(MENDED)
    error = case.expected.split(MENDED)[0]
    # the shell's prompt, and the lines with the caret, which repeat the statement
    said = re.search(r"error\[.*?(?=\npenstock> ?|\Z)", error, re.DOTALL)[0]
    title = case.comment.strip().removeprefix("# ")
    shown = "\n".join(line for line in said.split("\n"))
    return f"### {title}\n\n```\n{_typed(typed)}\n\n{shown}\n```\n\nMended:\n\n```\n{_typed(mended)}\n```\n"


def _typed(text: str) -> str:
    if " <<< " in text:
        return "penstock> " + text.partition(" <<< ")[2]
    return f"$ {text}" if text.startswith("penstock ") else text


if __name__ == "__main__":
    assert {path.name for path in case_files(SCRIPTS, "*")} == set(TOPICS)
    (Path(sys.argv[1]) / "MISTAKES.md").write_text(page(), encoding="utf-8")
