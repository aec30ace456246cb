"""The golden jobs, one zip archive a format version: ``golden/1.4.zip`` has a folder for each job.

An archive is only appended to: the members of jobs that are in it stay as they were written.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def golden_jobs() -> list[str]:
    """Return the jobs of all archives, as ``version/job``."""
    archives = sorted(GOLDEN.glob("*.zip"))
    assert archives, f"no archive in {GOLDEN}"
    return [f"{path.stem}/{job}" for path in archives for job in sorted(_jobs(path))]


def unpack(golden: str, target: Path) -> None:
    """Write the files of one golden job into a directory."""
    version, _, job = golden.partition("/")
    with zipfile.ZipFile(GOLDEN / f"{version}.zip") as archive:
        members = [name for name in archive.namelist() if name.startswith(f"{job}/")]
        assert members, f"{golden} is in no archive"
        for name in members:
            path = target / name.removeprefix(f"{job}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))


def append(golden: str, folder: Path) -> int:
    """Add the files of a folder as a golden job; return how many bytes the archive grew by. AssertionError for
    a job that is there.
    """
    version, _, job = golden.partition("/")
    path = GOLDEN / f"{version}.zip"
    before = path.stat().st_size if path.exists() else 0
    assert not before or job not in _jobs(path), f"{golden} is there and stays"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            # the time is a constant, so that the same files make the same archive
            member = zipfile.ZipInfo(f"{job}/{file.relative_to(folder).as_posix()}", (1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, file.read_bytes())
    return path.stat().st_size - before


def _jobs(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[0] for name in archive.namelist()}
