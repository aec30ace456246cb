"""``penstock init``: its project runs, is formatted, and overwrites nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.planner.formatter.formatter import format_script
from penstock.repl.cli import main
from penstock.repl.commands.init import PROJECT


def test_the_project_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_CONFIG", "/nonexistent")
    assert main(["init", "shop stats"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [f"wrote shop stats/{name}" for name in PROJECT]
    assert err == "now: cd 'shop stats' && penstock run job.sql\n"
    monkeypatch.chdir("shop stats")
    assert main(["run", "job.sql", "--csv", "--timeout", "60"]) == 0
    out, err = capsys.readouterr()
    # nothing is late, no minute is missing
    assert sorted(out.splitlines()[1:])[:3] == [
        "2026-01-05 09:00:00,/,3,24",
        "2026-01-05 09:00:00,/docs,1,95",
        "2026-01-05 09:00:00,/pricing,2,101",
    ]
    assert len(out.splitlines()) == 1 + 9
    assert "0 late rows" in err
    assert main(["run", "job.sql", "--check"]) == 0
    assert main(["fmt", "--check", "."]) == 0  # tests are not formatted
    assert main(["test"]) == 0
    assert "1 passed" in capsys.readouterr().out
    assert len(Path("README.md").read_text().splitlines()) == 10


def test_the_script_is_formatted() -> None:
    assert format_script(PROJECT["job.sql"]) == PROJECT["job.sql"]


@pytest.mark.parametrize("name", PROJECT)
def test_nothing_is_overwritten(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    assert main(["init", str(tmp_path)]) == 2
    assert f"{path} exists already; nothing was written" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert sorted(tmp_path.rglob("*")) == before


def test_a_directory_with_other_files_becomes_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert capsys.readouterr().err == "now: penstock run job.sql\n"
    assert (tmp_path / "data" / "visits.csv").exists()


def test_a_place_that_is_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file")]) == 2
    assert "error[CLI-6153]: cannot write" in capsys.readouterr().err
