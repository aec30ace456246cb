"""The packages under one folder ``penstock``, as they are installed, for tools that resolve no mapping of
folders.

``python -m tests.harness.package_tree`` lays them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TREE = ROOT / "build" / "package"
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
    return TREE


def _byte_code(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without links, or another one
        shutil.copy2(source, target)


if __name__ == "__main__":
    print(lay_package_tree())
