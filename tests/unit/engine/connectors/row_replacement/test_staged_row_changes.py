"""UPDATE, DELETE and MERGE of Delta and Iceberg tables: the rows that DuckDB has by the same statements, and a
table that is old or new whatever others do meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.connectors.delta import target as delta_target
from penstock.engine.connectors.iceberg import target as iceberg_target
from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog
from penstock.engine.connectors.row_replacement.staged_overwrite import StagedOverwrite
from tests.harness.patience import PATIENCE_S

deltalake: Any = pytest.importorskip("deltalake", reason="the extra delta is not installed")
pytest.importorskip("pyiceberg.table", reason="the extra iceberg is not installed")
OPTIONS = {
    "delta": "'connector' = 'delta', 'table-path' = '{path}/{name}'",
    "iceberg": "'connector' = 'iceberg', 'table-name' = 'db.{name}', 'catalog-type' = 'sql', "
    "'uri' = 'sqlite:///{path}/catalog.db', 'warehouse' = 'file://{path}/warehouse'",
}
COLUMNS = "id INT, a INT, b STRING, c DOUBLE"


@pytest.fixture(params=["delta", "iceberg"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    return {name: OPTIONS[request.param].format(path=tmp_path, name=name) for name in "tskp"}


@pytest.fixture
def session(options: dict[str, str]) -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb", "parallelism.default": "2"})
    session.execute(f"CREATE TABLE t ({COLUMNS}) WITH ({options['t']})")
    session.execute(f"CREATE TABLE s ({COLUMNS}) WITH ({options['s']})")
    yield session
    session.close()


def rows(session: Session, table: str) -> list[str]:
    found = session.execute(f"SELECT * FROM {table}").final_rows(PATIENCE_S).to_pylist()
    return sorted(" ".join(map(str, row.values())) for row in found)


def expected(oracle: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    return sorted(" ".join(map(str, row)) for row in oracle.execute(f"SELECT * FROM {table}").fetchall())


def add_by_library(session: Session, values: dict[str, list[Any]]) -> None:
    kinds = {"id": pa.int32(), "a": pa.int32(), "b": pa.string(), "c": pa.float64()}
    added = pa.table({name: pa.array(column, kinds[name]) for name, column in values.items()})
    options = session.catalog.table("t").options
    if options["connector"] == "delta":
        deltalake.write_deltalake(options["table-path"], added, mode="append")
        return
    catalog = opened_catalog(options)
    catalog.load_table(options["table-name"]).append(added)
    catalog.close()


def literal(random: Random, column: str) -> str:
    if random.random() < 0.25:
        return "NULL"
    number = random.randrange(6)
    return {"b": f"'{number}'", "c": f"CAST({number} AS DOUBLE)"}.get(column, str(number))


def condition(random: Random, names: tuple[str, ...] = ("",), depth: int = 2) -> str:
    """Return a condition of which some are NULL."""
    if depth and random.random() < 0.6:
        parts = [condition(random, names, depth - 1) for _ in range(2)]
        return random.choice(["({} AND {})", "({} OR {})", "(NOT {0} OR {1})"]).format(*parts)
    column = random.choice("ac")
    left, right = (f"{random.choice(names)}{column}" for _ in range(2))
    return random.choice([
        f"{left} > {random.randrange(6)}",
        f"{left} = {right}",
        f"{left} IS NULL",
        f"{left} <> {random.randrange(6)}",
        f"{left} IN (1, NULL, 4)",
        f"{random.choice(names)}b NOT IN ('1', '2')",
    ])  # fmt: skip


def search(random: Random) -> str:
    """Return a condition of WHERE, of which some read other tables or the table itself."""
    return random.choice([
        condition(random),
        condition(random),
        f"a IN (SELECT s.a FROM s WHERE {condition(random, ('s.',), 1)})",
        f"NOT EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND {condition(random, ('s.', 't.'), 0)})",
        "a > (SELECT AVG(x.a) FROM t AS x)",
        "id NOT IN (SELECT s.a FROM s)",
    ])  # fmt: skip


def merge(random: Random) -> str:
    both, source, target = ("t.", "s."), ("t.",), ("s.",)
    text = f"MERGE INTO t USING s ON t.id = s.id AND {condition(random, both, 1)}"
    if random.random() < 0.7:
        text += f" WHEN MATCHED AND {condition(random, both, 1)} THEN UPDATE SET a = s.a, b = t.b || s.b"
    text += random.choice([" WHEN MATCHED THEN DELETE", " WHEN MATCHED THEN UPDATE SET *", ""])
    if random.random() < 0.7:
        text += f" WHEN NOT MATCHED AND {condition(random, target, 1)} THEN INSERT (id, c) VALUES (s.id, s.c)"
    text += random.choice([" WHEN NOT MATCHED THEN INSERT *", ""])
    if random.random() < 0.5:
        text += f" WHEN NOT MATCHED BY SOURCE AND {condition(random, source, 1)} THEN UPDATE SET a = t.a + 1"
    return text + random.choice([" WHEN NOT MATCHED BY SOURCE THEN DELETE", ""])


def statement(random: Random) -> str:
    kind = random.choice(["UPDATE", "UPDATE", "DELETE", "MERGE"])
    if kind == "DELETE":
        return f"DELETE FROM t WHERE {search(random)}"
    if kind == "UPDATE":
        values = [
            f"a = {random.choice(['a + 1', 'CAST(c AS INT)', literal(random, 'a'), 'id'])}",
            f"b = {random.choice([literal(random, 'b'), 'CAST(a AS STRING)'])}",
            "c = (SELECT MAX(s.c) FROM s WHERE s.id <= t.id)",
        ]
        return f"UPDATE t SET {', '.join(random.sample(values, random.randint(1, 3)))} WHERE {search(random)}"
    text = merge(random)
    return text if " WHEN " in text else f"{text} WHEN MATCHED THEN DELETE"


@pytest.mark.parametrize(
    ("options", "seed"),
    [
        ("delta", 1),
        *(pytest.param(kind, seed, marks=pytest.mark.at_length) for kind in OPTIONS for seed in range(2, 30)),
    ],
    indirect=["options"],
)
def test_the_rows_are_those_of_duckdb(session: Session, seed: int) -> None:
    random = Random(seed)
    oracle = duckdb.connect()
    for table, ids in (("t", [random.randrange(9) for _ in range(14)]), ("s", random.sample(range(12), 8))):
        oracle.execute(f"CREATE TABLE {table} ({COLUMNS})")
        values = ", ".join(
            f"({number}, {', '.join(literal(random, column) for column in 'abc')})" for number in ids
        )
        session.execute(f"INSERT OVERWRITE {table} SELECT CAST(id AS INT), CAST(a AS INT), CAST(b AS STRING), "
                        f"CAST(c AS DOUBLE) FROM (VALUES {values}) AS v (id, a, b, c)")  # fmt: skip
        oracle.execute(f"INSERT INTO {table} VALUES {values}")
    for _ in range(6):
        text = statement(random)
        changed = session.execute(text).rowcount
        assert oracle.execute(text).fetchall() == [(changed,)], text
        assert rows(session, "t") == expected(oracle, "t"), text


def test_what_another_writer_adds_is_not_lost(
    session: Session, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writers: the second commits between the reading and the commit of the first, or in its midst."""
    other = Session({"bounded.backend": "duckdb"})
    other.execute(f"CREATE TABLE t ({COLUMNS}) WITH ({options['t']})")
    session.execute("INSERT INTO t VALUES (1, 1, 'x', NULL), (2, NULL, 'y', NULL)")
    add = "INSERT INTO t VALUES (3, 3, 'new', NULL)"
    reading = [
        "UPDATE t SET a = 0 WHERE a IS NOT NULL",
        "DELETE FROM t",
        "MERGE INTO t USING (SELECT 1 AS id) AS s ON s.id = t.id WHEN MATCHED THEN DELETE",
        "INSERT OVERWRITE t SELECT id, a, 'z', c FROM t",
    ]
    replace, meets = StagedOverwrite._replace, [0]

    def between(staged: StagedOverwrite, partitions: Any) -> None:
        other.execute(add)
        replace(staged, partitions)

    def amidst(point: str) -> None:
        # the lock of this process is held: another process writes
        if point == "L1" and meets[0] == 0:
            meets[0] += 1
            add_by_library(session, {"id": [3], "a": [3], "b": ["new"], "c": [None]})

    for number, text in enumerate(reading):
        before = rows(session, "t")
        if number % 2:
            monkeypatch.setattr(StagedOverwrite, "_replace", between)
        else:
            meets[0] = 0
            for module in (delta_target, iceberg_target):
                monkeypatch.setattr(module, "failpoint", amidst)
        with pytest.raises(PenstockError, match="DAT-4618") as refused:
            session.execute(text)
        assert "run the statement again" in str(refused.value.hint)
        monkeypatch.undo()
        assert rows(session, "t") == sorted([*before, "3 3 new None"])
    # rows that were not read: as if the other one had been before
    monkeypatch.setattr(StagedOverwrite, "_replace", between)
    session.execute("INSERT OVERWRITE t VALUES (7, 7, 'x', NULL)")
    monkeypatch.undo()
    assert rows(session, "t") == ["7 7 x None"]
    session.execute("UPDATE t SET a = 8")
    assert rows(session, "t") == ["7 8 x None"]
    other.close()


@pytest.mark.parametrize("options", ["delta"], indirect=True)
def test_several_source_rows_for_one_row_are_refused_unless_they_delete(session: Session) -> None:
    session.execute("INSERT INTO t VALUES (1, 1, 'x', NULL), (1, 1, 'x', NULL), (2, 2, 'y', NULL)")
    twice = "MERGE INTO t USING (VALUES (1, 5), (1, 6)) AS s (id, a) ON s.id = t.id WHEN MATCHED"
    with pytest.raises(PenstockError, match="DAT-4619"):
        session.execute(f"{twice} THEN UPDATE SET a = s.a")
    with pytest.raises(PenstockError, match="DAT-4619"):
        session.execute(f"{twice} AND s.a > 0 THEN DELETE")
    assert rows(session, "t") == ["1 1 x None", "1 1 x None", "2 2 y None"]
    # only one of the two acts
    assert session.execute(f"{twice} AND s.a = 6 THEN UPDATE SET a = s.a").rowcount == 2
    assert rows(session, "t") == ["1 6 x None", "1 6 x None", "2 2 y None"]
    # none acts: each row is there once
    added = "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = 0"
    assert session.execute(f"{twice} AND s.a > 9 THEN DELETE {added}").rowcount == 1
    assert rows(session, "t") == ["1 6 x None", "1 6 x None", "2 0 y None"]
    assert session.execute(f"{twice} THEN DELETE").rowcount == 2
    assert rows(session, "t") == ["2 0 y None"]


@pytest.mark.parametrize(
    "options", ["delta", pytest.param("iceberg", marks=pytest.mark.at_length)], indirect=True
)
def test_keys_partitions_and_columns(session: Session, options: dict[str, str]) -> None:
    session.execute(
        f"CREATE TABLE k (id INT, a INT NOT NULL, PRIMARY KEY (id) NOT ENFORCED) WITH ({options['k']})"
    )
    session.execute("INSERT INTO k VALUES (1, 1), (2, 2), (3, 3)")
    assert session.execute("UPDATE k SET id = id + 1").rowcount == 3
    for text, code in (
        ("UPDATE k SET id = 2 WHERE a > 1", "DAT-4630"),
        ("MERGE INTO k USING (VALUES (9), (9)) AS s (id) ON FALSE WHEN NOT MATCHED THEN INSERT VALUES (9, 9)",
         "DAT-4630"),
        ("UPDATE k SET a = CASE WHEN id > 2 THEN a END", "RUN-2005"),
        ("UPDATE k SET a = 1 DIV (id - 2)", "RUN"),
    ):  # fmt: skip
        with pytest.raises(PenstockError, match=code):
            session.execute(text)
    assert rows(session, "k") == ["2 1", "3 2", "4 3"]
    session.execute(f"CREATE TABLE p (id INT, day DATE) PARTITIONED BY (day) WITH ({options['p']})")
    session.execute("INSERT INTO p VALUES (1, DATE '2026-01-01'), (2, DATE '2026-01-02'), (3, NULL)")
    session.execute("UPDATE p SET day = DATE '2026-01-03' WHERE id <> 2")
    session.execute("DELETE FROM p WHERE day = DATE '2026-01-02'")
    assert rows(session, "p") == ["1 2026-01-03", "3 2026-01-03"]
    # a column that is not declared would be lost
    session.execute(f"CREATE TABLE narrow (id INT) WITH ({options['k']})")
    with pytest.raises(PenstockError, match=r"DAT-5306.*a .*is not declared"):
        session.execute("DELETE FROM narrow")
    assert rows(session, "k") == ["2 1", "3 2", "4 3"]


def test_a_failure_leaves_the_old_rows_and_a_commit_is_done_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.execute("INSERT INTO t VALUES (1, 1, 'x', NULL)")
    met: list[str] = []

    def failing(point: str) -> None:
        met.append(point)
        if met == ["L1"]:
            raise OSError("no space")
        if met == ["L1", "L1", "L2"]:
            name = (
                "CommitFailedError"
                if "delta" in repr(session.catalog.table("t"))
                else "CommitFailedException"
            )
            raise type(name, (Exception,), {})("lost")

    for module in (delta_target, iceberg_target):
        monkeypatch.setattr(module, "failpoint", failing)
    with pytest.raises(PenstockError):
        session.execute("UPDATE t SET a = a + 1")
    assert rows(session, "t") == ["1 1 x None"]
    # the outcome of the commit is not known
    assert session.execute("UPDATE t SET a = a + 1").rowcount == 1
    assert rows(session, "t") == ["1 2 x None"] and met == ["L1", "L1", "L2"]
    # in streaming mode too the statement is one of rows that end
    session.execute("SET 'execution.runtime-mode' = 'streaming'")
    assert session.execute("DELETE FROM t WHERE a = 9").note == "no row changed"
    assert session.execute("DELETE FROM t WHERE a = 2").note == "1 row deleted"
