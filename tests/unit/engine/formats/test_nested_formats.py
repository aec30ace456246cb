"""Arrays, maps and rows go into files and come out of them as they were; what is no value of their types
is a bad record.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import to_arrow
from penstock.client.session import Session
from penstock.planner.parser.type_parser import parse_type
from tests.harness.patience import PATIENCE_S

TYPES = {
    "id": "BIGINT",
    "a": "ARRAY<INT>",
    "aa": "ARRAY<ARRAY<STRING>>",
    "m": "MAP<STRING, INT>",
    "r": "ROW<t TIMESTAMP(3), d DATE, l ARRAY<TIME>, deep ROW<x DOUBLE, `y z` BOOLEAN>>",
    "am": "ARRAY<ROW<m MAP<STRING, DATE>, n DECIMAL(5, 2)>>",
}
ROWS = [
    {
        "id": 1,
        "a": [1, None, 3],
        "aa": [["x", 'q"'], [], None],
        "m": [("k", 1), ("j", None), ('"', 3)],
        "r": {
            "t": datetime(2024, 1, 2, 3, 4, 5, 678000),
            "d": date(2024, 1, 2),
            "l": [time(12, 30), None],
            "deep": {"x": 1.5, "y z": True},
        },
        "am": [{"m": [("é", date(2024, 2, 29))], "n": None}, None],
    },
    {"id": 2, "a": [], "aa": [], "m": [], "r": {"t": None, "d": None, "l": [], "deep": None}, "am": []},
    {"id": 3, "a": None, "aa": None, "m": None, "r": None, "am": None},
]
TABLE = pa.Table.from_pylist(
    ROWS, pa.schema([(name, to_arrow(parse_type(kind))) for name, kind in TYPES.items()])
)


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "2"})
    session.register("given", TABLE)
    yield session
    session.close()


def declare(session: Session, name: str, path: Path, form: str, more: str = "") -> None:
    columns = ", ".join(f"{column} {kind}" for column, kind in TYPES.items())
    session.execute(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{form}'{more})"
    )


@pytest.mark.parametrize("form", ["json", "parquet", "arrow"])
def test_files_keep_nested_values(session: Session, form: str, tmp_path: Path) -> None:
    declare(session, "kept", tmp_path / "kept", form)
    job = session.execute("INSERT INTO kept SELECT * FROM given").job
    assert job is not None and job.wait(PATIENCE_S) and job.error is None
    read = session.execute("SELECT * FROM kept").final_rows(PATIENCE_S)
    assert sorted(read.to_pylist(), key=lambda row: row["id"]) == ROWS
    one = session.execute("SELECT m FROM kept WHERE id = 1").final_rows(PATIENCE_S)
    assert one.column(0).to_pylist() == [ROWS[0]["m"]]


def test_what_is_no_value_is_a_bad_record(session: Session, tmp_path: Path) -> None:
    lines = [
        '{"id": 1, "m": {"k": "x"}}',
        '{"id": 2, "m": {"k": 2}}',
        '{"id": 3, "r": {"d": "no day"}}',
        '{"id": 4, "m": [1]}',
        '{"id": 5, "a": 1}',
        "",
    ]
    (tmp_path / "bad.json").write_text("\n".join(lines), encoding="utf-8")
    declare(session, "bad", tmp_path / "bad.json", "json", ", 'on-error' = 'skip'")
    assert session.execute("SELECT id FROM bad WHERE m IS NULL OR a IS NULL OR r IS NULL").final_rows(
        PATIENCE_S
    ).column(0).to_pylist() == [2]


def test_of_rows_in_parquet_the_wanted_fields_are_read(session: Session, tmp_path: Path) -> None:
    declare(session, "kept", tmp_path / "kept", "parquet")
    job = session.execute("INSERT INTO kept SELECT * FROM given").job
    assert job is not None and job.wait(PATIENCE_S) and job.error is None
    found = session.execute(
        "SELECT id, r.deep.x, r.d FROM kept WHERE id < 3 AND (r.t IS NULL OR r.deep.`y z`)"
    ).final_rows(PATIENCE_S)
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "x": 1.5, "d": date(2024, 1, 2)},
        {"id": 2, "x": None, "d": None},
    ]
    path = f"'connector' = 'filesystem', 'path' = '{tmp_path / 'kept'}', 'format' = 'parquet'"
    session.execute(f"CREATE TABLE fewer (id BIGINT, R ROW<deep ROW<`y z` BOOLEAN>, D DATE>) WITH ({path})")
    rows = session.execute("SELECT R FROM fewer WHERE id = 1").final_rows(PATIENCE_S).to_pylist()
    assert rows == [{"R": {"deep": {"y z": True}, "D": date(2024, 1, 2)}}]
    session.execute(f"CREATE TABLE wrong (id BIGINT, r ROW<nothing DATE>) WITH ({path})")
    with pytest.raises(PenstockError) as caught:
        session.execute("SELECT r FROM wrong").final_rows(PATIENCE_S)
    assert caught.value.code == "DAT-4205"
