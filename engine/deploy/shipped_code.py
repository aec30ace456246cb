"""Our own packages as one file, for machines that have not got them: the same bytes for the same code, wherever it is made."""

from __future__ import annotations

import atexit
import functools
import hashlib
import shutil
import tempfile
import zipfile
from pathlib import Path

PACKAGES = ("catalog", "planner", "engine")
"""What tasks run on."""
ROOT = Path(__file__).resolve().parents[2]
_SUFFIXES = (".py", ".lark")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def ship(directory: Path, root: Path = ROOT) -> Path:
    """Write the packages of ``root`` as ``penstock-<digest of the content>.zip`` into a directory and return the path."""
    names = sorted(path.relative_to(root).as_posix() for package in PACKAGES for path in (root / package).rglob("*") if path.suffix in _SUFFIXES)
    digest = hashlib.sha256()
    building = directory / ".penstock.zip.part"
    with zipfile.ZipFile(building, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            content = (root / name).read_bytes()
            digest.update(f"{len(name)} {name} {len(content)} ".encode() + content)
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return building.rename(directory / f"penstock-{digest.hexdigest()[:16]}.zip")


@functools.cache
def shipped() -> Path:
    """Return the file, made once for this process, since a Spark takes a name from one place only, and removed with it."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-shipped-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return ship(directory)
