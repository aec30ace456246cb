"""The figures of the corpus of bad inputs: ``python -m tests.bad_inputs.figures``."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.golden import GoldenCase, read_cases

HERE = Path(__file__).parent
_CODE = re.compile(r"error\[([A-Z]{3}-\d{4})\]: (.*)|\"code\": \"([A-Z]{3}-\d{4})\"")
_PLACED = re.compile(r"^ +\| +\^+$|^ +\| \^+$|\"span\": \[", re.MULTILINE)
_INSIDE = re.compile(r"Traceback|(?<!pass )\bNone\b|object at 0x|<class|sqlglot|lark|Token\(|File \"")
_NO_TEXT = ("commands_words", "python_program", "settings_session")
LINES_MOST, COLUMNS_MOST = 12, 120


@dataclass(frozen=True)
class Figures:
    """Counts over all bad inputs that have a golden answer."""

    inputs: int
    coded: int
    from_text: int
    placed: int
    hinted: int
    leaking: int
    too_wide: int
    too_long: int

    def __str__(self) -> str:
        return (
            f"{self.inputs} bad inputs: {self.coded} with a code; of {self.from_text} from a statement's text {self.placed} with a place;"
            f" {self.hinted} with a hint; {self.leaking} show the inside, {self.too_wide} have a message wider than {COLUMNS_MOST} columns,"
            f" {self.too_long} more than {LINES_MOST} lines"
        )


def bad_inputs() -> list[tuple[str, GoldenCase]]:
    """Every golden case that ends in an error, with its file."""
    files = [*sorted((HERE / "scripts").iterdir()), *sorted((HERE.parent / "planner" / "scripts").glob("bad_*.sql"))]
    cases = [(path.name, case) for path in files for case in read_cases(path)]
    return [(name, case) for name, case in cases if _CODE.search(case.expected)]


def figures() -> Figures:
    cases = bad_inputs()
    from_text = [(n, c) for n, c in cases if n not in _NO_TEXT and re.search(r"(SQL|RUN)-\d", c.expected) and "no place" not in c.comment]
    messages = [(case, match[2] or "") for _, case in cases for match in [_CODE.search(case.expected)] if match]
    return Figures(
        len(cases),
        len(messages),
        len(from_text),
        sum(bool(_PLACED.search(case.expected)) for _, case in from_text),
        sum("hint" in case.expected for _, case in cases),
        sum(bool(_INSIDE.search(case.expected)) for _, case in cases),
        sum(len(message) > COLUMNS_MOST for _, message in messages),
        sum(len(case.expected.splitlines()) > LINES_MOST for _, case in cases),
    )


def main() -> int:
    from tests.planner.test_typos import TEMPLATES, typos

    print(figures())
    print(f"{sum(len(typos(word)) for words in TEMPLATES.values() for word in words)} words with one letter wrong: tests/planner/test_typos.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
