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
PROGRAMS = ROOT / "build" / "programs" / "pipelines"
PIPELINES = ROOT / "docs" / "TABLE_API.md"
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
    """Lay each pipeline of the Table API's page as a program of its own, which mypy checks as strictly as
    ``--strict`` does.
    """
    first, *others = re.findall(
        r"^```python\n(.*?)^```$", PIPELINES.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    shutil.rmtree(PROGRAMS, ignore_errors=True)
    PROGRAMS.mkdir(parents=True)
    # a package, so that pyproject.toml can name all of them
    (PROGRAMS / "__init__.py").touch()
    paths = [PROGRAMS / f"pipeline_{number}.py" for number in range(1, len(others) + 1)]
    for path, program in zip(paths, others, strict=True):
        # the page's first block is the begin of every program
        path.write_text(first + program, encoding="utf-8")
    return paths


def _byte_code(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without links, or another one
        shutil.copy2(source, target)


if __name__ == "__main__":
    print(lay_package_tree())
