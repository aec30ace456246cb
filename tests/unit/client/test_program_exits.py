"""Python code of a program that ends its process: the statement fails, the process and its jobs go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.formats.file_writers import DurableFile
from tests.harness.patience import PATIENCE_S, await_that


class Panic(BaseException):
    """What a library in Rust raises: no Exception, so that nobody takes it for one by mistake."""


@penstock.udf(["BIGINT"], "BIGINT", mode="row")
def exits(number: int) -> int:
    raise SystemExit(3)


@penstock.udf(["BIGINT"], "BIGINT", mode="row")
def panics(number: int) -> int:
    if number >= 100:
        raise Panic("index out of bounds")
    return number


@penstock.udaf(["BIGINT"], "BIGINT", mode="row")
def exits_in_a_group(numbers: object) -> int:
    raise SystemExit(3)


@penstock.udtf(["BIGINT"], {"n": "BIGINT"}, mode="row")
def exits_among_rows(number: int) -> Iterator[tuple[int]]:
    yield (1,)
    raise SystemExit(3)


@pytest.fixture(params=["streaming", "batch"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb", "execution.runtime-mode": request.param})
    for function in (exits, exits_in_a_group, exits_among_rows):
        session.create_function(function)
    session.execute("CREATE VIEW numbers AS SELECT * FROM (VALUES (1), (2)) AS v (n)")
    yield session
    session.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT exits(n) FROM numbers",
        "SELECT exits_in_a_group(n) FROM numbers",
        "SELECT t.n FROM numbers, LATERAL TABLE(exits_among_rows(numbers.n)) AS t (n)",
    ],
)
def test_a_function_that_exits_fails_its_statement(session: Session, query: str) -> None:
    with pytest.raises(PenstockError) as failed:
        session.execute(query).final_rows(PATIENCE_S)
    assert "SystemExit: 3" in str(failed.value)
    assert session.execute("SELECT 1 AS one").final_rows(PATIENCE_S).to_pylist() == [{"one": 1}]


def test_a_module_that_exits_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    (tmp_path / "script_of_mine.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PenstockError) as refused:
        session.execute("CREATE FUNCTION f AS 'script_of_mine.f' LANGUAGE PYTHON")
    assert refused.value.code == "SQL-1333" and "SystemExit" in refused.value.message


def writing(session: Session, path: Path, text: str) -> str:
    session.execute(
        f"CREATE TABLE t (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
    )
    session.execute(
        "CREATE TABLE s (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000', "
        "'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '100000')"
    )
    job = session.execute(f"INSERT INTO t SELECT {text} FROM s").job
    assert job is not None
    await_that(lambda: job.state.terminal)
    return str(job.state)


def test_what_no_handler_expects_ends_the_job_and_lets_others_write(tmp_path: Path) -> None:
    session = Session({"bounded.backend": "duckdb", "table.dml-sync": "false"})
    try:
        session.create_function(panics)
        assert writing(session, tmp_path / "t", "panics(id)") == "FAILED"
        # the failed job's sink is closed
        session.execute("SET 'table.dml-sync' = 'true'")
        session.execute("INSERT OVERWRITE t VALUES (1)")
    finally:
        session.close()


def test_a_sink_that_cannot_delete_its_files_lets_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: DurableFile) -> None:
        raise OSError(5, "Input/output error")

    session = Session({"bounded.backend": "duckdb", "table.dml-sync": "false"})
    try:
        with monkeypatch.context() as broken:
            broken.setattr(DurableFile, "discard", fails)
            assert writing(session, tmp_path / "t", "100 / (id - 300)") == "FAILED"
        session.execute("SET 'table.dml-sync' = 'true'")
        session.execute("INSERT OVERWRITE t VALUES (1)")
    finally:
        session.close()
