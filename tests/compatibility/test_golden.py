"""Checkpoints of every format version there ever was are restored, and give what the job gives when it is
not interrupted.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.checkpoint.manifest import VERSION, unseal
from penstock.engine.checkpoint.reader import CheckpointReader
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.storage.local import LocalStorage
from penstock.engine.storage.sealed_json import seal
from tests.compatibility import archive
from tests.compatibility.archive import append, golden_jobs, unpack
from tests.compatibility.jobs import JOBS, finish, results
from tests.harness.length import briefly

KEPT = golden_jobs()
OLDEST_AND_NEWEST = {
    next(kept)
    for job in JOBS
    for kept in (filter(lambda golden: golden.endswith(f"/{job}"), order) for order in (KEPT, KEPT[::-1]))
}
"""Of each job the first and the last version that is kept: what is restored in brief."""


def brought(golden: str, target: Path) -> str:
    """Unpack a golden job's directory; return the job's name."""
    unpack(golden, target)
    return golden.split("/")[1]


def expected(directory: Path) -> dict[str, object]:
    lines = (directory / "expected.json").read_text(encoding="utf-8").splitlines()
    return json.loads("{" + ",".join(lines) + "}")


def test_every_job_is_kept_in_this_format() -> None:
    version = ".".join(map(str, VERSION))
    assert {golden.split("/")[1] for golden in KEPT if golden.startswith(f"{version}/")} == set(JOBS), (
        "run python -m tests.compatibility.write"
    )


def test_what_is_in_an_archive_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match=r"1\.1/keyed is there and stays"):
        append("1.1/keyed", tmp_path)
    monkeypatch.setattr(archive, "GOLDEN", tmp_path / "golden")
    (tmp_path / "golden").mkdir()
    for job in ("one", "two"):
        (tmp_path / job / "state").mkdir(parents=True)
        (tmp_path / job / "state" / "CURRENT").write_text(job, encoding="utf-8")
        assert append(f"9.9/{job}", tmp_path / job) > 0
    assert golden_jobs() == ["9.9/one", "9.9/two"]
    unpack("9.9/one", tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "state" / "CURRENT").read_text(encoding="utf-8") == "one"


@pytest.mark.parametrize("golden", briefly(KEPT, OLDEST_AND_NEWEST))
def test_restored(golden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = brought(golden, tmp_path)
    monkeypatch.chdir(tmp_path)
    before = results(job)
    finish(job)
    assert results(job) == expected(tmp_path)
    assert before != expected(tmp_path)


@pytest.mark.parametrize("golden", [f"1.3/{job}" for job in ("keyed", "layered", "windows", "ranks", "join")])
def test_restored_in_wider_types(golden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What that version wrote of meanings is still what is compared."""
    job = brought(golden, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert any(change.startswith("migrated: ") for change in finish(job, wide=True))
    assert results(job) == expected(tmp_path)


@pytest.mark.parametrize(
    ("golden", "operators"), [("1.1/layered", {"aggregate"}), ("1.2/in_time", {"hop", "over"})]
)
def test_some_of_them_have_layers(golden: str, operators: set[str], tmp_path: Path) -> None:
    name = brought(golden, tmp_path)
    reader = CheckpointReader(LocalStorage(tmp_path / "state" / f"{name}-1"))
    found = {line.operator for line in reader.states(reader.manifest()) if line.increments > 1}
    assert all(any(operator in name.lower() for name in found) for operator in operators), found


def refusal(directory: Path, job_id: str) -> PenstockError:
    store = CheckpointStore(LocalStorage(directory), job_id)
    with pytest.raises(PenstockError) as refused:
        store.open()
    store.close()
    return refused.value


@pytest.mark.parametrize("version", sorted({golden.split("/")[0] for golden in KEPT}))
def test_forged_ones_are_refused(version: str, tmp_path: Path) -> None:
    brought(f"{version}/keyed", tmp_path)
    state = tmp_path / "state" / "keyed-1"
    assert refusal(state, "another").code == "STA-3010"
    current = state / "CURRENT"
    whole = current.read_bytes()
    fields = unseal("CURRENT", whole)
    for forged, said in (
        ({"version": [9, 0]}, "[9, 0]"),
        ({"requires": ["ribbons"]}, "ribbons"),
        ({"format": "other"}, "other"),
    ):
        current.write_bytes(seal({**fields, **forged}))
        error = refusal(state, "keyed-1")
        assert error.code == "STA-3006" and said in error.message and "1." in error.message
    current.write_bytes(whole.replace(b"keyed", b"kexed"))
    assert refusal(state, "keyed-1").code == "STA-3005"
    current.write_bytes(whole)
    manifest = state / str(fields["manifest"])
    manifest.write_bytes(manifest.read_bytes()[:-40])
    assert refusal(state, "keyed-1").code == "STA-3005"
