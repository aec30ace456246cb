"""Our own packages as one zip file, for machines without them. The same code makes the same bytes on every
machine.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

PACKAGES = ("catalog", "planner", "engine")
"""The packages that tasks need."""
_BESIDE = Path(__file__).resolve().parents[3]
"""The directory that contains the packages: ``penstock`` where it is installed, the top of the repository in
a checkout.
"""
ROOT = _BESIDE.parent if (_BESIDE / "__init__.py").is_file() else _BESIDE
"""The entry of ``sys.path`` from which ``penstock`` is imported."""
# source and grammars; no byte code, which depends on the Python
_SUFFIXES = (".py", ".lark")
# the earliest date of a zip entry: the archive's bytes must not depend on file times
_EPOCH = (1980, 1, 1, 0, 0, 0)


def package_files(packages: Iterable[str]) -> dict[str, Path]:
    """Return the files of packages under ``penstock`` by their installed names, sorted by name."""
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
            # lengths, so that no two lists of files give the same bytes
            digest.update(f"{len(name)} {name} {len(content)} ".encode() + content)
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    # the name contains the digest: another version of the code is another file
    return building.rename(directory / f"penstock-{digest.hexdigest()[:16]}.zip")


@functools.cache
def shipped() -> Path:
    """Return the archive of this process. It is made once, since a Spark accepts a file name from one path
    only, and removed with the process.
    """
    directory = Path(tempfile.mkdtemp(prefix="penstock-shipped-"))
    atexit.register(_remove, directory, os.getpid())
    return write_archive(directory)


def _remove(directory: Path, process: int) -> None:
    # a process that was forked meanwhile ends before the one whose Spark reads the archive
    if process == os.getpid():
        shutil.rmtree(directory, ignore_errors=True)
