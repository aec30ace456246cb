"""What a page of docs/ shows: files (a name between backticks and a colon, then a block with its text), and
steps (commands behind ``$`` and statements behind ``penstock>``, each with what it answers below).
"""

from __future__ import annotations

import re
from pathlib import Path

_FILE = re.compile(r"^`([\w./]+)`:\n\n```(?:sql)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```\n((?:\$|penstock>) .*?)^```$", re.MULTILINE | re.DOTALL)
# what is typed goes on in lines that are set in as far as the prompt
_STEP = re.compile(r"^(\$|penstock>) (.+\n(?: {10}.+\n)*)((?:(?!\$ |penstock> ).+\n)*)", re.MULTILINE)


def write_page_files(page: Path, directory: Path) -> None:
    """Write the files that a page shows into a directory."""
    for name, text in _FILE.findall(page.read_text(encoding="utf-8")):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def page_steps(page: Path) -> list[tuple[str, str, str]]:
    """Return the steps of a page: prompt, what is typed, and the lines that stand below it."""
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [
        (prompt, re.sub(r"\n {10}", "\n", typed).strip(), answer)
        for block in blocks
        for prompt, typed, answer in _STEP.findall(block)
    ]
