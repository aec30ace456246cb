"""Files that a page of docs/ shows: a name between backticks and a colon, then a block with its text."""

from __future__ import annotations

import re
from pathlib import Path

_FILE = re.compile(r"^`([\w./]+)`:\n\n```(?:sql)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_page_files(page: Path, directory: Path) -> None:
    """Write the files that a page shows into a directory."""
    for name, text in _FILE.findall(page.read_text(encoding="utf-8")):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
