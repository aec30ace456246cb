"""``python -m tests.compatibility.write``: stops every job in mid-run and adds its checkpoints to
``golden/<format version>.zip``, with the rows it must have in the end.

To be run once for a new format version; what is there is never written again.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from penstock.engine.checkpoint.manifest import VERSION
from penstock.engine.checkpoint.reader import CheckpointReader
from penstock.engine.connectors.filesystem.staged_files import STAGING
from penstock.engine.storage.local import LocalStorage
from tests.compatibility.archive import GOLDEN, append, golden_jobs
from tests.compatibility.jobs import JOBS, finish, results, stop_in_mid_run


def main() -> None:
    """Write the golden checkpoints of this engine's format."""
    for job in JOBS:
        golden = f"{'.'.join(map(str, VERSION))}/{job}"
        if golden in golden_jobs():
            print(f"{golden} is there and stays")
            continue
        home = Path.cwd()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as copy:
            target = Path(copy)
            try:
                os.chdir(folder)
                stop_in_mid_run(job)
                pending = unpublish(job) if job == "files" else 0
                shutil.copytree(folder, target, dirs_exist_ok=True)
                finish(job)
                expected = results(job)
            finally:
                os.chdir(home)
            (target / "expected.json").write_text(
                "".join(f"{json.dumps(sink)}: {json.dumps(rows)}\n" for sink, rows in expected.items()),
                encoding="utf-8",
            )
            (target / "state" / f"{job}-1" / "LOCK").unlink(missing_ok=True)
            size = append(golden, target)
        print(f"{GOLDEN}: {golden}, {size:,} bytes, {pending} commits pending")
        assert size <= 100_000


def unpublish(job: str) -> int:
    """Take back what the last checkpoint's commits published, as if the job had been killed before them;
    return how many there were.
    """
    reader = CheckpointReader(LocalStorage(Path("state") / f"{job}-1"))
    number = 0
    for _, state, item in reader.items(reader.manifest()):
        for file in item["items"] if state == "pending" else ():
            final = Path("out/copied") / file["final"]
            staged = final.parent / STAGING / file["folder"] / file["staged"]
            staged.parent.mkdir(parents=True, exist_ok=True)
            final.rename(staged)
            number += 1
    assert number
    return number


if __name__ == "__main__":
    main()
