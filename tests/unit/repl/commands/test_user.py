"""``penstock user``: a file of users made, listed and changed by command lines."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.client.server.security.authenticators import FileAuthenticator
from penstock.repl.cli import main


def test_users_and_tokens_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ["--users", str(tmp_path / "users.json")]
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\n"))
    assert main(["user", "add", "ann", "--role", "run", "--password-stdin", *file]) == 0
    assert main(["user", "token", "ci", *file]) == 0
    token = capsys.readouterr().out.splitlines()[-1]
    known = FileAuthenticator(tmp_path / "users.json")
    assert known.by_password("ann", "correct horse").role == "run"
    assert known.by_token(token).name == "ci"

    assert main(["user", "role", "ann", "admin", *file]) == 0
    assert main(["user", "list", "--json", *file]) == 0
    listed = json.loads(capsys.readouterr().out.partition("on\n")[2])
    assert listed == [
        {"kind": "user", "name": "ann", "role": "admin"},
        {"kind": "token", "name": "ci", "role": "read"},
    ]
    assert main(["user", "remove", "ci", *file]) == 0
    assert main(["user", "list", *file]) == 0
    assert capsys.readouterr().out.endswith("user  admin  ann\n")


def test_programs_that_change_the_file_at_once_lose_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"t{number}" for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        codes = list(
            pool.map(lambda name: main(["user", "token", name, "--users", str(tmp_path / "u.json")]), names)
        )
    assert codes == [0] * len(names)
    capsys.readouterr()
    assert main(["user", "list", "--json", "--users", str(tmp_path / "u.json")]) == 0
    assert sorted(one["name"] for one in json.loads(capsys.readouterr().out)) == sorted(names)


def test_mistakes_say_what_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = ["--users", str(tmp_path / "users.json")]
    assert main(["user", "list", *file]) == 1
    assert "CLI-6215" in capsys.readouterr().err
    assert main(["user", "token", "ci", *file]) == 0
    assert main(["user", "remove", "ic", *file]) == 1
    assert 'did you mean "ci"' in capsys.readouterr().err
    for words in (["user", "add", *file], ["user", "role", "ci", "root", *file]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
