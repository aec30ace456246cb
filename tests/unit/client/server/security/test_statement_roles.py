"""Which role each statement needs; no kind of statement is forgotten."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.server.principal import Principal, PrincipalRole
from penstock.client.server.security.statement_roles import OPERATOR_SETTINGS, check_role, required_role
from penstock.client.statements.dispatch import parse_statements

READ, RUN, ADMIN = PrincipalRole


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("SELECT 1", READ),
        ("SUBSCRIBE SELECT * FROM t", READ),
        ("EXPLAIN INSERT INTO t SELECT 1", READ),
        ("SHOW JOBS", READ),
        ("SHOW CREATE TABLE t", READ),
        ("DESCRIBE t", READ),
        ("USE shop", READ),
        ("SET", READ),
        ("SET 'table.local-time-zone' = 'UTC'", READ),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", READ),
        ("CREATE VIEW v AS SELECT 1", RUN),
        ("DROP VIEW v", RUN),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'blackhole')", RUN),
        ("CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'blackhole')", RUN),
        ("INSERT INTO t SELECT 1", RUN),
        ("UPDATE t SET a = 1", RUN),
        ("DELETE FROM t", RUN),
        ("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", RUN),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1 AS a", RUN),
        ("DROP TABLE t", RUN),
        ("ALTER TABLE t RENAME TO u", RUN),
        ("STOP JOB 'j'", RUN),
        ("CANCEL JOB 'j'", RUN),
        ("CREATE FUNCTION f AS 'm.f' LANGUAGE PYTHON", ADMIN),
        ("DROP FUNCTION f", ADMIN),
        ("CREATE CATALOG c WITH ('type' = 'memory')", ADMIN),
        ("SET 'python.modules' = 'os'", ADMIN),
        ("SET 'execution.checkpointing.dir' = '/tmp'", ADMIN),
        ("RESET 'spark.master'", ADMIN),
    ],
)
def test_the_least_role_of_a_statement(text: str, role: PrincipalRole) -> None:
    node = parse_statements(text)[0].node
    assert required_role(node) is role
    for held in PrincipalRole:
        principal = Principal("ann", held)
        if principal.may(role):
            check_role(principal, node)
        else:
            with pytest.raises(PenstockError) as raised:
                check_role(principal, node)
            assert raised.value.code == "CLI-6211"
            assert str(role) in str(raised.value)


def test_operator_settings_are_beginnings_of_settings() -> None:
    from penstock.catalog.settings import Settings

    keys = [key for key, _ in Settings({}).items()]
    for begin in OPERATOR_SETTINGS:
        # settings of Spark are any that begin so
        assert begin == "spark." or any(key.startswith(begin) for key in keys), begin


def test_settings_that_name_directories_ports_and_code_are_the_operators() -> None:
    from penstock.catalog.settings import Settings

    words = (
        "dir",
        "path",
        "host",
        "port",
        "bind-host",
        "modules",
        "ca",
        "certificate",
        "key",
        "port-range",
        "deployment",
    )
    for key, _ in Settings({}).items():
        if key.replace("-", ".").split(".")[-1] in words or key.split(".")[-1] in words:
            assert key.startswith(OPERATOR_SETTINGS), key
