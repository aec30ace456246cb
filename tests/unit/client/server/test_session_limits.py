"""The gate of statements: what is refused, and what never is."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.server.session_limits import SessionLimits, StatementGate
from penstock.planner.statements import nodes
from penstock.planner.statements.script import parse_script


def node(sql: str) -> nodes.Statement:
    return parse_script(sql, None)[0].node


def test_statements_beyond_the_limit_are_refused_and_those_that_stop_jobs_are_not() -> None:
    gate = StatementGate(SessionLimits(statements=1))
    with gate.admit(node("SELECT 1")):
        with pytest.raises(PenstockError) as raised, gate.admit(node("SELECT 1")):
            pass
        assert (raised.value.code, raised.value.sqlstate, raised.value.retriable) == (
            "CLI-6205",
            "53400",
            True,
        )
        with gate.admit(node("STOP JOB 'a'")), gate.admit(node("SHOW JOBS")):
            assert gate.running == 3
    assert gate.running == 0
    with gate.admit(node("SELECT 1")):
        pass


def test_nothing_that_computes_is_started_without_memory() -> None:
    gate = StatementGate(SessionLimits(memory_bytes=1_000_000))
    gate.is_short_of_memory = True
    with pytest.raises(PenstockError) as raised, gate.admit(node("SELECT 1")):
        pass
    assert raised.value.sqlstate == "53200" and "--max-memory" in (raised.value.hint or "")
    with gate.admit(node("CANCEL JOB 'a'")):
        pass
