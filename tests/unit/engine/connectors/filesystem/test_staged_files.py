"""Staged files: a name is one writer's, a publication is done once, and nothing outside the table is touched."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.filesystem.staged_files import STAGING, StagedFiles


@pytest.fixture
def files(tmp_path: Path) -> StagedFiles:
    return StagedFiles(tmp_path / "t", "mine", "former")


def never(item: Any) -> bool:
    return False


def staged(files: StagedFiles, data: bytes = b"rows", final: str = "part-0.csv") -> dict[str, Any]:
    name, _ = files.reserve("part", 0, ())
    files.staged(name).write_bytes(data)
    return {
        "staged": name,
        "folder": files.folder,
        "final": final,
        "bytes": len(data),
        "crc32": zlib.crc32(data),
    }


def test_a_reserved_name_is_nobody_else_s(files: StagedFiles) -> None:
    assert files.reserve("part", 0, ()) == ("part-0.inprogress", 0)
    assert files.reserve("part", 0, ()) == ("part-1.inprogress", 1)
    assert files.reserve("part", 0, {"part-2.inprogress"}) == ("part-3.inprogress", 3)
    assert StagedFiles(files.root, "other", "former").reserve("part", 0, ())[1] == 0
    assert files.leftovers("mine") == ["part-0.inprogress", "part-1.inprogress", "part-3.inprogress"]
    assert files.leftovers("nobody") == []


def test_a_file_is_published_once(files: StagedFiles) -> None:
    item = staged(files, final="k=1/part-0.csv")
    files.sync()
    assert files.publish(item, never) and not files.publish(item, never)
    assert (files.root / "k=1/part-0.csv").read_bytes() == b"rows" and files.leftovers("mine") == []
    files.sync_published([item["final"], "gone/part-1.csv"])
    (files.root / "k=1/part-0.csv").unlink()
    assert not files.publish(item, lambda published: published is item), "a reader has moved it away"
    with pytest.raises(PenstockError, match="DAT-4604"):
        files.publish(item, never)


def test_another_file_of_the_final_name_is_not_ours(files: StagedFiles) -> None:
    item = staged(files)
    for other in (b"sworn", b"swor"):
        (files.root / item["final"]).write_bytes(other)
        with pytest.raises(PenstockError, match="DAT-460"):
            files.publish(item, never)
        assert (files.root / item["final"]).read_bytes() == other and files.leftovers("mine")


def test_what_an_early_version_staged_is_in_the_former_folder(files: StagedFiles) -> None:
    item = staged(StagedFiles(files.root, "former", "x"))
    del item["folder"], item["bytes"], item["crc32"]
    assert not files.is_own(item) and files.is_own(staged(files))
    assert files.publish(item, never) and not files.publish(item, never)


@pytest.mark.parametrize("name", ["../x", "a/b", "/etc/passwd", ".."])
def test_names_of_a_forged_checkpoint_lead_nowhere(files: StagedFiles, name: str) -> None:
    item = staged(files)
    for field in ("staged", "folder"):
        with pytest.raises(PenstockError, match="STA-3502"):
            files.publish({**item, field: name}, never)
    if name != "a/b":
        with pytest.raises(PenstockError, match="STA-3502"):
            files.publish({**item, "final": name}, never)


def test_a_free_name_is_that_of_no_file(files: StagedFiles) -> None:
    (files.root / "k=1").mkdir(parents=True)
    assert files.free_name("", "part", ".csv", 0) == ("part-0000.csv", 0)
    for number in (3, 4):
        (files.root / f"k=1/part-{number:04d}.csv").touch()
    assert files.free_name("k=1", "part", ".csv", 3) == ("k=1/part-0005.csv", 5)


def test_only_empty_folders_are_tidied_away(files: StagedFiles) -> None:
    item = staged(files)
    files.tidy()
    assert files.leftovers("mine") == [item["staged"]]
    for _ in range(2):
        files.discard(item["staged"])
    files.tidy("nobody")
    assert not (files.root / STAGING).exists()


def test_a_disk_that_takes_nothing_is_named(files: StagedFiles) -> None:
    with pytest.raises(PenstockError, match="DAT-4606") as caught, files.report_unwritable():
        raise OSError(28, "No space left on device")
    assert str(files.root) in caught.value.message and caught.value.retriable
