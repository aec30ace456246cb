"""The file of users: written whole, private, and read at each log-in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.server.principal import LOCAL, PrincipalRole
from penstock.client.server.security.audit_log import AuditLog
from penstock.client.server.security.authenticators import (
    AuditedAuthenticator,
    FileAuthenticator,
    OpenAuthenticator,
)
from penstock.client.server.security.user_file import Users, read_users, write_users

RUN, READ = PrincipalRole.RUN, PrincipalRole.READ


def fixed(count: int) -> bytes:
    return bytes(range(count))


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    users = Users().with_user("ann", RUN, "correct horse", fixed)
    users, _ = users.with_token("ci", READ, fixed)
    write_users(tmp_path / "users.json", users)
    yield tmp_path / "users.json"


def code_of(action: object, *arguments: object) -> str:
    with pytest.raises(PenstockError) as raised:
        action(*arguments)  # type: ignore[operator]
    return raised.value.code


def test_the_file_is_private_and_has_no_password(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text(encoding="utf-8")
    assert "correct horse" not in text
    assert fixed(32).hex() not in text
    assert list(path.parent.iterdir()) == [path]


def test_users_and_tokens_are_recognized(path: Path) -> None:
    known = FileAuthenticator(path, fixed)
    assert known.by_password("ann", "correct horse").role is RUN
    assert known.by_token("pstk_" + fixed(32).hex()).role is READ
    assert known.by_scram("ann").name == "ann"
    assert known.scram_verifier("ann").accepts("correct horse")
    for wrong in (("ann", "wrong"), ("bob", "correct horse"), ("ann", "")):
        assert code_of(known.by_password, *wrong) == "CLI-6210"
    assert code_of(known.by_token, "pstk_x") == code_of(known.by_scram, "bob") == "CLI-6210"
    assert not known.scram_verifier("bob").accepts("correct horse")


def test_the_same_sentence_is_said_whatever_was_wrong(path: Path) -> None:
    known = FileAuthenticator(path, fixed)
    sentences = set()
    for attempt in (
        lambda: known.by_password("ann", "x"),
        lambda: known.by_password("bob", "x"),
        lambda: known.by_token("x"),
    ):
        with pytest.raises(PenstockError) as raised:
            attempt()
        sentences.add(str(raised.value))
    assert len(sentences) == 1


def test_a_user_who_is_removed_cannot_log_in_again(path: Path) -> None:
    known = FileAuthenticator(path, fixed)
    known.by_password("ann", "correct horse")
    write_users(path, read_users(path).without("ann"))
    assert code_of(known.by_password, "ann", "correct horse") == "CLI-6210"
    path.unlink()
    assert code_of(known.by_password, "ann", "correct horse") == "CLI-6215"


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"format": 2}', '{"format": 1, "users": {"a": {}}, "tokens": {}}'],
)
def test_a_damaged_file_is_refused(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
    assert code_of(read_users, path) == "CLI-6215"


def test_a_file_that_others_may_read_is_refused(path: Path) -> None:
    path.chmod(0o644)
    assert code_of(FileAuthenticator, path) == "CLI-6215"


def test_a_new_password_replaces_the_old_one(path: Path) -> None:
    write_users(path, read_users(path).with_user("ann", READ, "other", os.urandom))
    known = FileAuthenticator(path)
    assert known.by_password("ann", "other").role is READ
    assert code_of(known.by_password, "ann", "correct horse") == "CLI-6210"
    assert json.loads(path.read_text(encoding="utf-8"))["tokens"].keys() == {"ci"}


@pytest.mark.parametrize("name", ["", " ann", "a\nb", "x" * 64])
def test_odd_names_are_refused(name: str) -> None:
    assert code_of(Users().with_user, name, READ, "secret", fixed) == "CLI-6213"


def test_an_empty_password_and_an_unknown_name_are_refused() -> None:
    assert code_of(Users().with_user, "ann", READ, "", fixed) == "CLI-6213"
    assert code_of(Users().without, "ann") == "CLI-6214"


def test_each_refusal_has_a_line_in_the_audit(path: Path) -> None:
    lines: list[str] = []
    known = AuditedAuthenticator(FileAuthenticator(path, fixed), AuditLog(lines.append, lambda: 7))
    assert known.required
    assert known.by_password("ann", "correct horse").name == known.by_scram("ann").name == "ann"
    assert not lines
    code_of(known.by_password, "ann", "hush-hush")
    code_of(known.by_token, "pstk_secret")
    assert known.refuse("bob").code == "CLI-6210"
    written = [json.loads(line) for line in lines]
    assert [line["event"] for line in written] == ["login_refused"] * 3
    assert [line.get("user") for line in written] == ["ann", None, "bob"]
    assert "hush" not in "".join(lines)
    assert "pstk" not in "".join(lines)


def test_without_users_every_client_is_local() -> None:
    known = OpenAuthenticator(fixed)
    assert known.by_token("x") == known.by_password("a", "b") == known.by_scram("a") == LOCAL
    assert not known.scram_verifier("a").accepts("")
