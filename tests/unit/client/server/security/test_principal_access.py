"""A session of a server: statements of each role, files by every way to name them, and the audit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.client.execution.engine_state import EngineState
from penstock.client.server.principal import Principal, PrincipalRole
from penstock.client.server.security.access_policy import AccessPolicy
from penstock.client.server.security.audit_log import AuditLog
from penstock.client.server.security.principal_access import PrincipalAccess
from penstock.client.session import Session


class Server:
    """Sessions over one engine, and the lines of their audit."""

    def __init__(self, root: Path) -> None:
        self.engine = EngineState(Settings({"bounded.backend": "duckdb"}), is_shared=True)
        self.lines: list[str] = []
        self.audit = AuditLog(self.lines.append, lambda: 1_000)
        self.policy = AccessPolicy(paths=(str(root / "shared"),), hosts=("*.example.com",))

    def session(self, role: PrincipalRole) -> Session:
        session = Session(engine=self.engine)
        principal = Principal(f"a {role}", role)
        session.restrict(PrincipalAccess(principal, self.policy, self.audit, "test", f"s-{role}"))
        return session


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    for folder in ("shared", "private"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    server = Server(tmp_path)
    yield server
    server.engine.close()


def code_of(session: Session, text: str) -> str | None:
    try:
        result = session.execute(text)
        if result.has_rows:
            result.final_rows(10)
    except PenstockError as error:
        return error.code
    return None


def test_roles(server: Server) -> None:
    read, run, admin = (server.session(role) for role in PrincipalRole)
    table = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')"
    assert code_of(read, table) == "CLI-6211"
    assert code_of(run, table) is None
    assert code_of(read, "SELECT COUNT(*) FROM t") is None
    assert code_of(read, "DROP TABLE t") == "CLI-6211"
    assert code_of(run, "CREATE FUNCTION f AS 'os.getcwd' LANGUAGE PYTHON") == "CLI-6211"
    # an administrator may, and the error is of Python
    assert code_of(admin, "CREATE FUNCTION f AS 'os.getcwd' LANGUAGE PYTHON") == "SQL-1334"
    assert code_of(read, "SET 'table.local-time-zone' = 'Europe/Berlin'") is None
    assert code_of(run, "SET 'execution.checkpointing.dir' = '/tmp/x'") == "CLI-6211"


def files(folder: Path) -> list[str]:
    """Every way to name a file."""
    declared = f"WITH ('connector' = 'filesystem', 'path' = '{folder}/a.csv', 'format' = 'csv')"
    return [
        f"CREATE TABLE t1 (x INT, y INT) {declared}",
        f"CREATE TABLE t2 {declared}",
        f"CREATE TEMPORARY TABLE t3 (x INT, y INT) {declared}",
        f"SELECT * FROM '{folder}/a.csv'",
        f"EXPLAIN SELECT * FROM '{folder}/a.csv'",
        f"CREATE VIEW v1 AS SELECT * FROM '{folder}/a.csv'",
        f"SELECT * FROM shared_rows /*+ OPTIONS('path' = '{folder}/a.csv') */",
        f"ALTER TABLE shared_rows SET ('path' = '{folder}/a.csv')",
        f"CREATE TABLE t4 WITH ('path' = '{folder}/a.csv') LIKE shared_rows (OVERWRITING OPTIONS)",
        f"CREATE TABLE t5 WITH ('connector' = 'filesystem', 'path' = '{folder}/out', 'format' = 'csv') AS SELECT 1 AS a",
        f"CREATE TABLE t6 (x INT) WITH ('connector' = 'sqlite', 'path' = '{folder}/a.db', 'table-name' = 't')",
    ]


def test_files_outside_of_what_is_allowed_are_refused_however_they_are_named(
    server: Server, tmp_path: Path
) -> None:
    run = server.session(PrincipalRole.RUN)
    shared = tmp_path / "shared"
    declared = f"WITH ('connector' = 'filesystem', 'path' = '{shared}/a.csv', 'format' = 'csv')"
    assert code_of(run, f"CREATE TABLE shared_rows (x INT, y INT) {declared}") is None
    for text in files(tmp_path / "private"):
        assert code_of(run, text) == "CLI-6216", text
    # the control: the same statements over the directory that is allowed
    allowed = [code_of(run, text) for text in files(shared)]
    assert "CLI-6216" not in allowed
    assert allowed.count(None) >= 9, allowed


def test_what_an_administrator_declares_is_read_by_all(server: Server, tmp_path: Path) -> None:
    read, admin = server.session(PrincipalRole.READ), server.session(PrincipalRole.ADMIN)
    path = tmp_path / "private" / "a.csv"
    assert (
        code_of(
            admin, f"CREATE TABLE p WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
        )
        is None
    )
    assert code_of(read, "SELECT * FROM p") is None
    assert code_of(read, "SELECT * FROM p /*+ OPTIONS('path' = '/etc/passwd') */") == "CLI-6216"
    assert code_of(read, "SELECT * FROM '/etc/passwd'") == "CLI-6216"


def test_each_statement_has_a_line_without_secrets(server: Server) -> None:
    run = server.session(PrincipalRole.RUN)
    code_of(
        run,
        "CREATE TABLE k (a INT) WITH ('connector' = 'http', 'url' = 'http://evil.org/', 'headers.x' = 'hush-hush', 'format' = 'json')",
    )
    lines = [json.loads(line) for line in server.lines]
    assert [line["event"] for line in lines] == ["statement", "statement_refused"]
    assert lines[1]["code"] == "CLI-6216"
    assert lines[0]["user"] == "a run"
    assert lines[0]["at_ms"] == 1_000
    assert "hush-hush" not in "".join(server.lines)
