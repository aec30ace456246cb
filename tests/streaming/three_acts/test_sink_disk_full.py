"""A full disk under the files of a table: the job tries again and every row comes once, or fails with a code and
the directory; no staged file is left.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.connectors.filesystem.commit_log import COMMITS
from penstock.engine.connectors.filesystem.staged_files import STAGING, StagedFiles
from penstock.engine.formats.file_writers import DurableFile, TextWriter
from tests.fault_injection.swept_job import expected, script, unpublished, write_input, written

STEPS: dict[str, tuple[type, str]] = {
    "write": (TextWriter, "_put"),
    "finish": (DurableFile, "finish"),
    "directories": (StagedFiles, "sync"),
    "publish": (StagedFiles, "publish"),
}


def failing(patch: pytest.MonkeyPatch, step: str, times: int, code: int) -> Callable[[], int]:
    """Let a step of the sink fail at its third, fifth, .. call, so often; return how often it has."""
    owner, name = STEPS[step]
    real, calls, failed = getattr(owner, name), [0], [0]

    def fails(self: object, *words: object) -> object:
        calls[0] += 1
        if calls[0] % 2 and calls[0] > 1 and failed[0] < times:
            failed[0] += 1
            raise OSError(code, os.strerror(code))
        return real(self, *words)

    patch.setattr(owner, name, fails)
    return lambda: failed[0]


def run(root: Path, settings: dict[str, str]) -> None:
    fixed = {
        "bounded.backend": "duckdb",
        "table.dml-sync": "true",
        "execution.checkpointing.interval": "20 ms",
        "parallelism.default": "2",
    }
    session = Session({**fixed, **settings}, state_dir=root / "state")
    try:
        for statement in session.parse(script(root, root / "out", rate=400, rolling=3)):
            session.run(statement)
    finally:
        session.close()


@pytest.fixture(scope="module")
def rooted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("full")
    write_input(root, 5)
    return root


@pytest.fixture
def root(rooted: Path, tmp_path: Path) -> Path:
    for name in ("much", "little"):
        (tmp_path / name).symlink_to(rooted / name)
    return tmp_path


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_when_the_disk_has_space_again_every_row_is_there_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    failed = failing(monkeypatch, step, 3, code)
    run(
        root,
        {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.attempts": "20",
            "restart-strategy.delay": "5 ms",
        },
    )
    assert failed() == 3
    assert written(root / "out") == expected(root)
    assert unpublished(root / "out") == []


@pytest.mark.parametrize("step", STEPS)
def test_a_job_that_may_not_try_again_names_the_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    failing(monkeypatch, step, 1, errno.ENOSPC)
    with pytest.raises(PenstockError) as caught:
        run(root, {"restart-strategy.type": "none"})
    assert caught.value.code == "DAT-4606"
    assert f"files cannot be written to {root / 'out'}: No space left on device" in caught.value.message
    left = unpublished(root / "out")
    # prepared ones wait for the next run to commit them
    assert all(name.startswith((STAGING, f"{COMMITS}/under-way/")) for name in left), left
