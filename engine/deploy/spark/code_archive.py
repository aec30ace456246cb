"""Our own packages as one file, for machines that have not got them: the same bytes for the same code,
wherever it is made.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

PACKAGES = ("catalog", "planner", "engine")
"""What tasks run on."""
_BESIDE = Path(__file__).resolve().parents[3]
"""Where the packages lie: the folder ``penstock`` where it is installed, the top of the repository in a
checkout.
"""
ROOT = _BESIDE.parent if (_BESIDE / "__init__.py").is_file() else _BESIDE
"""What stands on ``sys.path`` where ``penstock`` can be imported."""
_SUFFIXES = (".py", ".lark")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def package_files(packages: Iterable[str]) -> dict[str, Path]:
    """Return the files of packages under ``penstock`` by the names they are installed with, in the order
    of those.
    """
    files = {
        path.relative_to(_BESIDE): path
        for package in packages
        for path in (_BESIDE / package).rglob("*")
        if path.suffix in _SUFFIXES
    }
    named = {f"penstock/{name.as_posix()}": path for name, path in files.items()}
    named["penstock/__init__.py"] = ROOT / "penstock" / "__init__.py"
    return dict(sorted(named.items()))


def write_archive(directory: Path, packages: Iterable[str] = PACKAGES) -> Path:
    """Write packages as ``penstock-<digest of the content>.zip`` into a directory and return the path."""
    digest = hashlib.sha256()
    building = directory / ".penstock.zip.part"
    with zipfile.ZipFile(building, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in package_files(packages).items():
            content = path.read_bytes()
            digest.update(f"{len(name)} {name} {len(content)} ".encode() + content)
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return building.rename(directory / f"penstock-{digest.hexdigest()[:16]}.zip")


@functools.cache
def shipped() -> Path:
    """Return the file, made once for this process, since a Spark takes a name from one place only, and
    removed with it.
    """
    directory = Path(tempfile.mkdtemp(prefix="penstock-shipped-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return write_archive(directory)
