"""The packages under one folder ``penstock``, as they are installed, for tools that resolve no mapping of
folders.

``python -m tests.harness.package_tree`` lays them.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TREE = ROOT / "build" / "package"
PROGRAMS = ROOT / "build" / "programs" / "pages"
FIRST_BEGINS_ALL = ("TABLE_API.md", "PYTHON.md")
"""Pages whose first block is the begin of every program on them."""
PACKAGES = ("catalog", "planner", "optimizer", "engine", "client", "repl")


def lay_package_tree() -> Path:
    """Lay the tree anew and return the folder to put on the path. Files are hard links, so that mypy finds
    what it knows of them.
    """
    TREE.parent.mkdir(exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=TREE.parent))
    shutil.copytree(ROOT / "penstock", building / "penstock", ignore=_byte_code, copy_function=_link)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, building / "penstock" / package, ignore=_byte_code, copy_function=_link
        )
    shutil.rmtree(TREE, ignore_errors=True)
    building.rename(TREE)
    lay_programs()
    return TREE


def lay_programs() -> list[Path]:
    """Lay the programs of the pages, which mypy checks as strictly as ``--strict`` does, and return them."""
    shutil.rmtree(PROGRAMS, ignore_errors=True)
    PROGRAMS.mkdir(parents=True)
    # a package, so that pyproject.toml can name all of them
    (PROGRAMS / "__init__.py").touch()
    paths = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for number, program in enumerate(_programs(page), 1):
            paths.append(PROGRAMS / f"{page.stem.lower()}_{number}.py")
            paths[-1].write_text(program, encoding="utf-8")
    return paths


def _programs(page: Path) -> list[str]:
    """Return the programs of a page: its blocks together, or each behind the first where that begins all."""
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if page.name in FIRST_BEGINS_ALL:
        return [found[0] + block for block in found[1:]]
    return ["\n".join(found)] if found else []


def _byte_code(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without links, or another one
        shutil.copy2(source, target)


if __name__ == "__main__":
    print(lay_package_tree())
