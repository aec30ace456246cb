"""Golden scripts: cases of input and expected text in one file, compared or (with ACCEPT=1) rewritten.

A file holds cases separated by a line of at least four ``=``. In a case, everything above a line ``---`` is
the input, everything below is expected. Leading lines that start with ``#`` say why the case exists and are
not part of the input::

    # a filter that reads nothing stays
    SELECT 1 WHERE TRUE
    ---
    Filter ..
    ====
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.catalog.secrets import KNOWN, KnownSecrets

_CASE = re.compile(r"^={4,}[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class GoldenCase:
    """One case: the 1-based line it starts on, its comment lines, its input and what is expected of it."""

    line: int
    comment: str
    input: str
    expected: str

    def text(self) -> str:
        """Return the case as it stands in a file."""
        return f"{self.comment}{self.input}\n---\n{self.expected}\n"


def read_cases(path: Path) -> list[GoldenCase]:
    """Return the cases of a golden file in order."""
    text = path.read_text(encoding="utf-8")
    cases, start = [], 0
    for end in [*(match.start() for match in _CASE.finditer(text)), len(text)]:
        block = text[start:end]
        if block.strip("=\n "):
            cases.append(_read_case(re.sub(r"\A={4,}[ \t]*\n", "", block), text.count("\n", 0, start) + 2))
        start = end
    return cases


def _read_case(block: str, line: int) -> GoldenCase:
    block = block.lstrip("\n")
    comment = re.match(r"(?:#[^\n]*\n)*", block)[0]
    head, _, tail = block[len(comment) :].partition("\n---")
    return GoldenCase(line, comment, head.strip("\n"), tail.strip("\n"))


def check_golden(path: Path, run: Callable[[str], str]) -> None:
    """Run every case of a file and compare; a PenstockError is its rendered text. With ACCEPT=1 in the
    environment the file is rewritten.
    """
    # a password of an earlier test, such as postgres, is masked in every text of this process
    vars(KNOWN).update(vars(KnownSecrets()))
    cases = read_cases(path)
    actual = [replace(case, expected=_outcome(run, case.input)) for case in cases]
    if os.environ.get("ACCEPT") == "1":
        path.write_text("====\n".join(case.text() for case in actual), encoding="utf-8")
        return
    failures = [_difference(path, old, new) for old, new in zip(cases, actual, strict=True) if old != new]
    assert not failures, "\n\n".join(failures) + "\n\nrun again with ACCEPT=1 to accept"


def _outcome(run: Callable[[str], str], text: str) -> str:
    try:
        return run(text).strip("\n")
    except PenstockError as error:
        return error.render().strip("\n")


def _difference(path: Path, old: GoldenCase, new: GoldenCase) -> str:
    diff = difflib.unified_diff(
        old.expected.split("\n"), new.expected.split("\n"), "expected", "actual", lineterm=""
    )
    return f"{path.name}:{old.line}\n{old.input}\n" + "\n".join(diff)
