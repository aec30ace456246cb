"""``penstock fmt``: files in place, --check, --diff, stdin, and files that must stay as they are."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from penstock.repl.cli import main

UGLY, NEAT = "select a,b from t -- all\n", "SELECT a, b FROM t -- all\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "job.sql"
    path.write_text(UGLY)
    return path


def test_files_are_formatted_in_place(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.chmod(0o640)
    link = script.with_name("link.sql")
    link.symlink_to(script)
    assert main(["fmt", str(link)]) == 0
    assert script.read_text() == NEAT
    assert link.is_symlink()
    assert script.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().err == "1 file formatted, 0 left as they were\n"
    before = script.stat()
    assert main(["fmt", str(script)]) == 0
    # an unchanged file is not written, so that no build runs again
    assert (script.stat().st_mtime_ns, script.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert sorted(path.name for path in script.parent.iterdir()) == ["job.sql", "link.sql"]


def test_check_and_diff_write_nothing(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--check", str(script)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{script} would be formatted",
        "1 file would change, 0 left as they were",
    ]
    assert main(["fmt", "--diff", str(script)]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["@@ -1 +1 @@", f"-{UGLY[:-1]}", f"+{NEAT[:-1]}"]
    assert main(["fmt", "--check", "--diff", str(script)]) == 1
    assert script.read_text() == UGLY
    script.write_text(NEAT)
    assert main(["fmt", "--check", str(script)]) == 0


def test_stdin_goes_to_stdout(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UGLY.encode())))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == NEAT
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(NEAT.encode())))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr() == (NEAT, "")


def test_a_file_with_an_error_stays_and_the_others_are_formatted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.sql").write_text("selec 1;\nselect 2 frm t u;\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.sql").write_text(UGLY)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "c.sql").write_text(UGLY)
    assert main(["fmt", str(tmp_path)]) == 1
    assert (tmp_path / "a.sql").read_text().startswith("selec 1")
    assert (tmp_path / "sub" / "b.sql").read_text() == NEAT
    assert (tmp_path / ".hidden" / "c.sql").read_text() == UGLY
    errors = capsys.readouterr().err
    assert f"{tmp_path / 'a.sql'}:1:1: error[SQL-" in errors
    assert f"{tmp_path / 'a.sql'}:2:" in errors, "every error of a file is printed"


@pytest.mark.parametrize(
    ("name", "code"), [("none.sql", "CLI-6131"), ("empty", "CLI-6151"), ("bytes.sql", "CLI-6132")]
)
def test_what_cannot_be_read(
    name: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bytes.sql").write_bytes(b"select '\xff'")
    assert main(["fmt", str(tmp_path / name)]) in (1, 2)
    assert f"error[{code}]" in capsys.readouterr().err


def test_a_file_that_may_not_be_written(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # for root every file can be written
    monkeypatch.setattr("os.access", lambda *_: False)
    assert main(["fmt", str(script)]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert script.read_text() == UGLY
