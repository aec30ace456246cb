"""What counts as a save: a changed file that is whole, also one that a script includes."""

from __future__ import annotations

from pathlib import Path

from penstock.repl.launch.watched_files import Fingerprint, WatchedFiles, file_fingerprint


class Disk:
    """Fingerprints that a test sets."""

    def __init__(self) -> None:
        self.files: dict[Path, Fingerprint | None] = {}

    def __call__(self, path: Path) -> Fingerprint | None:
        return self.files.get(path, (0, 0, 0))


def test_a_save_counts_when_the_file_is_still() -> None:
    disk, path = Disk(), Path("job.sql")
    files = WatchedFiles(["job.sql"], disk)
    assert files.poll() is None
    # written in three steps, by an editor that replaces the file
    disk.files[path] = None
    assert files.poll() is None
    disk.files[path] = (1, 10, 7)
    assert files.poll() is None
    disk.files[path] = (2, 20, 7)
    assert files.poll() is None
    assert files.poll() == path
    # until the files are looked at again
    assert files.poll() == path
    files.look()
    assert files.poll() is None


def test_a_file_that_was_put_back_is_no_save() -> None:
    disk, path = Disk(), Path("job.sql")
    files = WatchedFiles(["job.sql"], disk)
    disk.files[path] = (1, 1, 1)
    assert files.poll() is None
    disk.files[path] = (0, 0, 0)
    assert files.poll() is None
    disk.files[path] = (1, 1, 1)
    assert files.poll() is None


def test_included_files_are_watched(tmp_path: Path) -> None:
    main, beside, far = tmp_path / "main.sql", tmp_path / "beside.sql", tmp_path / "sub" / "far.sql"
    far.parent.mkdir()
    main.write_text(f"\\ir beside.sql\nSELECT 1;\n  \\i '{far}'\n\\i gone.sql\n-- \\i no.sql\n")
    # a circle
    beside.write_text(f"\\include {main}\n")
    far.write_text("SELECT 2;")
    files = WatchedFiles([str(main)])
    for path in (beside, far):
        path.write_text(path.read_text() + "\nSELECT 3;")
        assert files.poll() is None
        assert files.poll() == path
        files.look()
    assert file_fingerprint(tmp_path / "gone.sql") is None
