"""The figures of the corpus of bad inputs: ``python -m tests.sql.bad_inputs.figures``."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.harness.case_files import case_files
from tests.harness.golden import GoldenCase, read_cases

HERE = Path(__file__).parent
_CODE = re.compile(r"error\[([A-Z]{3}-\d{4})\]: (.*)|\"code\": \"([A-Z]{3}-\d{4})\"")
_PLACED = re.compile(r"^ +\| +\^+$|^ +\| \^+$|\"span\": \[", re.MULTILINE)
_INSIDE = re.compile(r"Traceback|(?<!pass )\bNone\b|object at 0x|<class|sqlglot|lark|Token\(|File \"")
_CARET = re.compile(r"^ *\d* \| (.*)\n +\| ( *)(\^+)$", re.MULTILINE)
_NAMED = re.compile(r'"([^"]+)"')
_SAID = re.compile(r"^# caret: (.*)$", re.MULTILINE)
_NO_TEXT = ("commands_words", "python_program", "settings_session")
LINES_MOST, COLUMNS_MOST = 12, 120


@dataclass(frozen=True)
class Figures:
    """Counts over all bad inputs that have a golden answer."""

    inputs: int
    coded: int
    from_text: int
    placed: int
    named: int
    covered: int
    cut: int
    hinted: int
    leaking: int
    too_wide: int
    too_long: int

    def __str__(self) -> str:
        return (
            f"{self.inputs} bad inputs: {self.coded} with a code; of {self.from_text} from a statement's text {self.placed} with a place;"
            f" of {self.named} that name their culprit {self.covered} have the caret under it, {self.cut} carets cut a word;"
            f" {self.hinted} with a hint; {self.leaking} show the inside, {self.too_wide} have a message wider than {COLUMNS_MOST} columns,"
            f" {self.too_long} more than {LINES_MOST} lines"
        )


def bad_inputs() -> list[tuple[str, GoldenCase]]:
    """Every golden case that ends in an error, with its file."""
    files = [
        *case_files(HERE / "scripts", "*"),
        *case_files(HERE.parents[1] / "unit" / "planner" / "scripts", "bad_*.sql"),
    ]
    cases = [(path.name, case) for path in files for case in read_cases(path)]
    return [(name, case) for name, case in cases if _CODE.search(case.expected)]


def underlined(case: GoldenCase) -> tuple[str, str] | None:
    """The text above a caret, and the line it is in."""
    found = _CARET.search(case.expected)
    return None if found is None else (found[1][len(found[2]) : len(found[2]) + len(found[3])], found[1])


def culprit(case: GoldenCase) -> str | None:
    """What a case's caret has to be under: as a comment of the case says, else the name in the message if
    the input has it.
    """
    if said := _SAID.search(case.comment):
        return said[1]
    message = _CODE.search(case.expected)
    named = _NAMED.search(message[2] or "") if message else None
    return named[1] if named and named[1].lower() in case.input.lower() and underlined(case) else None


def covers(case: GoldenCase) -> bool:
    """Whether the caret is under the culprit: its whole text, or a part of it where the message shows
    more.
    """
    meant, shown = (culprit(case) or "").lower(), underlined(case)
    return shown is not None and (meant in shown[0].lower() or shown[0].strip("'\"`").lower() in meant)


def cuts_a_word(case: GoldenCase) -> bool:
    """Whether a caret begins or ends within a word."""
    shown = underlined(case)
    found = _CARET.search(case.expected)
    if shown is None or found is None or not shown[1].isascii():
        return False
    begin, text = len(found[2]), shown[1]
    end = begin + len(shown[0])
    if (begin, end) == (0, 1):  # the whole of a long statement
        return False
    return any(0 < at < len(text) and text[at - 1 : at + 1].isalpha() for at in (begin, end))


def figures() -> Figures:
    cases = bad_inputs()
    named = [case for _, case in cases if culprit(case)]
    from_text = [
        (n, c)
        for n, c in cases
        if n not in _NO_TEXT and re.search(r"(SQL|RUN)-\d", c.expected) and "no place" not in c.comment
    ]
    messages = [
        (case, match[2] or "") for _, case in cases for match in [_CODE.search(case.expected)] if match
    ]
    return Figures(
        len(cases),
        len(messages),
        len(from_text),
        sum(bool(_PLACED.search(case.expected)) for _, case in from_text),
        len(named),
        sum(map(covers, named)),
        sum(cuts_a_word(case) for _, case in cases),
        sum("hint" in case.expected for _, case in cases),
        sum(bool(_INSIDE.search(case.expected)) for _, case in cases),
        sum(len(message) > COLUMNS_MOST for _, message in messages),
        sum(len(case.expected.splitlines()) > LINES_MOST for _, case in cases),
    )


def main() -> int:
    from tests.unit.planner.test_typos import TEMPLATES, typos

    print(figures())
    print(
        f"{sum(len(typos(word)) for words in TEMPLATES.values() for word in words)} words with one letter wrong: tests/unit/planner/test_typos.py"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
