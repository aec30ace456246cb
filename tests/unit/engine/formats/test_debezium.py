"""Debezium's JSON in and out: changes as weighted rows, bad envelopes by the table's policy, files as one
sequence, places to resume at.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

GOOD = [
    {
        "before": None,
        "after": {"id": 1, "name": "a", "at": "10:00:00"},
        "op": "c",
        "source": {"db": "x"},
        "ts_ms": 5,
    },
    {"before": None, "after": {"id": 2, "name": None, "at": None}, "op": "r"},
    {
        "before": {"id": 1, "name": "a", "at": "10:00:00"},
        "after": {"id": 1, "name": 'é"\n', "at": "11:00:00"},
        "op": "u",
    },
    {"before": {"id": 2, "name": None, "at": None}, "after": None, "op": "d"},
]
BAD = {
    "null": "a tombstone contains no change",
    '{"before": null, "after": null, "op": "c"}': "op is c, a row is created, but there is no after",
    '{"after": {"id": 3}, "op": "u"}': "op is u, a row is updated, but there is no before: a source must log whole rows (REPLICA IDENTITY FULL)",
    '{"before": null, "op": "d"}': "op is d, a row is deleted, but there is no before: a source must log whole rows (REPLICA IDENTITY FULL)",
    '{"before": null, "after": {"id": 3}, "op": "x"}': 'op is "x"; a change is {"before": .., "after": .., "op": "c", "r", "u" or "d"}',
    '{"id": 3, "name": "c"}': 'a change is {"before": .., "after": .., "op": "c", "r", "u" or "d"}',
    '{"schema": {}, "payload": {"after": {"id": 3}, "op": "c"}}': "the change is in a payload: 'debezium-json.schema-include' = 'true'",
    '{"before": null, "after": {"id": "three"}, "op": "c"}': 'after: "three" is not a valid INT',
    '{"before": null, "after": [], "op": "c"}': "op is c, a row is created, but there is no after",
    "{": "not JSON: expecting property name enclosed in double quotes",
}


def text(changes: list[Any]) -> str:
    return "".join(f"{change if isinstance(change, str) else json.dumps(change)}\n" for change in changes)


def table(session: Session, path: Path, more: str = "") -> None:
    options = f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'debezium-json'{more}"
    session.execute(
        f"CREATE TABLE t (id INT, name STRING, at TIME, PRIMARY KEY (id) NOT ENFORCED) WITH ({options})"
    )


def rows(session: Session, query: str) -> list[dict[str, Any]]:
    return session.execute(query).final_rows().to_pylist()


@pytest.fixture
def session() -> Session:
    return Session({"bounded.backend": "duckdb"})


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_what_is_left(session: Session, tmp_path: Path, mode: str) -> None:
    session.settings.set("execution.runtime-mode", mode)
    (tmp_path / "a.json").write_text(text(GOOD[:2]), encoding="utf-8")
    (tmp_path / "b.json").write_text(text(GOOD[2:]), encoding="utf-8")
    table(session, tmp_path)
    assert [(row["id"], row["name"], str(row["at"])) for row in rows(session, "SELECT * FROM t")] == [
        (1, 'é"\n', "11:00:00")
    ]
    assert rows(session, "SELECT COUNT(*) AS n FROM t") == [{"n": 1}]


def test_schema_beside_the_change(session: Session, tmp_path: Path) -> None:
    wrapped = [{"schema": {"type": "struct"}, "payload": change} for change in GOOD]
    (tmp_path / "a.json").write_text(text(wrapped), encoding="utf-8")
    table(session, tmp_path, ", 'debezium-json.schema-include' = 'true'")
    assert rows(session, "SELECT id FROM t") == [{"id": 1}]


@pytest.mark.parametrize("line", BAD)
def test_bad_changes(session: Session, tmp_path: Path, line: str) -> None:
    (tmp_path / "a.json").write_text(text([*GOOD[:2], line, *GOOD[2:]]), encoding="utf-8")
    table(session, tmp_path / "a.json")
    with pytest.raises(PenstockError) as caught:
        rows(session, "SELECT id FROM t")
    assert caught.value.code == "DAT-4201"
    assert BAD[line] in caught.value.message
    assert "row 3" in caught.value.message
    session.execute("DROP TABLE t")
    table(session, tmp_path / "a.json", ", 'on-error' = 'table'")
    assert rows(session, "SELECT id FROM t") == [{"id": 1}]
    assert rows(session, "SELECT error FROM t$errors")[0]["error"].startswith(BAD[line])


@pytest.mark.parametrize("payload", ["true", "false"])
def test_written_and_read_again(session: Session, tmp_path: Path, payload: str) -> None:
    session.settings.set("table.dml-sync", "true")
    session.settings.set("execution.batch.max-rows", "1")
    (tmp_path / "a.json").write_text(text([*GOOD, GOOD[1]]), encoding="utf-8")
    table(session, tmp_path / "a.json", ", 'source.replay' = 'true'")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'debezium-json', 'debezium-json.schema-include' = '{payload}'"
    session.execute(
        f"CREATE TABLE o (id BIGINT, name STRING, at TIME, PRIMARY KEY (id) NOT ENFORCED) WITH ({options})"
    )
    session.execute("INSERT INTO o SELECT * FROM t")
    written = [
        json.loads(line)
        for file in sorted((tmp_path / "out").glob("part-*"))
        for line in file.read_text().splitlines()
    ]
    changes = [line["payload"] if payload == "true" else line for line in written]
    assert [change["op"] for change in changes] == ["c", "c", "u", "d", "c"]
    assert changes[2] == {
        "before": {"id": 1, "name": "a", "at": "10:00:00.000000"},
        "after": {"id": 1, "name": 'é"\n', "at": "11:00:00.000000"},
        "op": "u",
    }
    assert sorted(row["name"] or "" for row in rows(session, "SELECT * FROM o")) == ["", 'é"\n']


def _arrive(path: Path, content: str) -> None:
    """Write a file whole, as whoever fills a watched directory should."""
    path.with_name(f".{path.name}").write_text(content, encoding="utf-8")
    path.with_name(f".{path.name}").rename(path)


def test_a_file_that_comes_too_late_is_refused(session: Session, tmp_path: Path) -> None:
    _arrive(tmp_path / "b.json", text(GOOD[:2]))
    table(session, tmp_path, ", 'source.monitor-interval' = '20 ms'")
    result = session.execute("SELECT id FROM t")
    first = result.next(PATIENCE_S)
    assert first is not None
    assert first.num_rows == 2
    _arrive(tmp_path / "c.json", text(GOOD[2:]))
    following = result.next(PATIENCE_S)
    assert following is not None
    assert following.weights is not None
    _arrive(tmp_path / "a.json", text(GOOD[:1]))
    with pytest.raises(
        PenstockError, match=r"a\.json came after .*c\.json was read, but sorts before it"
    ) as caught:
        result.next(PATIENCE_S)
    assert caught.value.code == "DAT-4111"
    session.close()


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_changes_with_their_ops(session: Session, tmp_path: Path, kind: str) -> None:
    session.settings.set("table.dml-sync", "true")
    session.settings.set("execution.batch.max-rows", "1")
    (tmp_path / "a.json").write_text(text(GOOD), encoding="utf-8")
    table(session, tmp_path / "a.json", ", 'source.replay' = 'true'")
    expected = {"upsert": [("+I", 1, "a"), ("+I", 2, None), ("+U", 1, 'é"\n'), ("-D", 2, None)]}
    expected["retract"] = [*expected["upsert"][:2], ("-U", 1, "a"), *expected["upsert"][2:]]
    for mode, changes in expected.items():
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/{mode}', 'format' = '{kind}', 'changelog.mode' = '{mode}'"
        session.execute(
            f"CREATE TABLE {mode} (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({options})"
        )
        session.execute(f"INSERT INTO {mode} SELECT id, name FROM t")
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/{mode}', 'format' = '{kind}'"
        options += ", 'csv.multiline' = 'true'" if kind == "csv" else ""
        session.execute(f"CREATE TABLE {mode}_again (op STRING, id INT, name STRING) WITH ({options})")
        assert [tuple(row.values()) for row in rows(session, f"SELECT * FROM {mode}_again")] == changes
