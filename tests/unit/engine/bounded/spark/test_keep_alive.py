"""A Spark that outlives the command line that started it, and programs whose Spark is a server of Spark
Connect: one server for both.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark.connect_application import SparkServer
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.keep_alive import daemon_states, missing_modules, stop_daemons
from penstock.repl.cli import main
from tests.harness.patience import PATIENCE_S

ROOT = Path(__file__).parents[5]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory for keepers of these tests alone, and a table."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "n.csv").write_text("n,t\n" + "".join(f"{n},text of {n}\n" for n in range(100_000)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder
        stop_daemons()


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    said = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=said,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def gone(pid: int, within_s: float = PATIENCE_S) -> bool:
    for _ in range(int(within_s / 0.1)):
        if not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text():
            return True
        time.sleep(0.1)
    return False


def test_nothing_kept_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "status"]) == main(["spark", "stop"]) == 0
    assert capsys.readouterr().out == "no Spark is kept alive\n" * 2
    folder = next(place.glob("penstock-spark-*"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_directory_of_somebody_else_is_not_used(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.engine.bounded.spark import keep_alive

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"penstock-spark-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PenstockError) as caught:
        keep_alive._directory()
    assert caught.value.code == "BND-5016"


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    before = time.monotonic()
    with pytest.raises(PenstockError) as caught:
        SparkServer("sc://127.0.0.1:1").session()
    assert caught.value.code == "BND-5008" and "127.0.0.1:1" in caught.value.message
    assert time.monotonic() - before < PATIENCE_S  # the client alone would try again for ten minutes


@pytest.mark.spark
def test_a_spark_is_kept_alive_and_served_over_connect(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    if missing_modules():
        pytest.skip("the modules of Spark Connect are not installed")
    table = f"CREATE TABLE n (n BIGINT, t STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{place}/n.csv')"
    query = run(
        "-m",
        "penstock",
        "--set",
        "bounded.backend=spark",
        "--set",
        "spark.keep-alive=1 h",  # the next program may need minutes to begin, on a machine that is busy
        "--csv",
        "-c",
        table,
        "-c",
        "SELECT COUNT(*) AS n FROM n",
    )
    assert (query.returncode, query.stdout) == (0, "n\n100000\n"), query.stderr
    (state,) = daemon_states()
    assert state["leases"] == 0 and state["keep_alive_s"] == 3600
    assert main(["spark", "status", "--json"]) == 0
    told = capsys.readouterr().out
    assert json.loads(told)[0]["java_pid"] == state["java_pid"] and state["token"] not in told

    stranger = run(
        "-m",
        "penstock",
        "-c",
        table,
        "-c",
        "SELECT COUNT(*) FROM n",
        SPARK_REMOTE=state["url"] + "/;token=none",
    )
    assert "BND-5018" in stranger.stderr and state["token"] not in stranger.stderr

    known = {"SPARK_REMOTE": state["url"], "SPARK_CONNECT_AUTHENTICATE_TOKEN": state["token"]}
    program = run(
        "-m", "tests.unit.engine.bounded.spark.connect_program", str(place), str(state["java_pid"]), **known
    )
    assert program.returncode == 0, program.stderr
    saw = json.loads(program.stdout)
    check(saw)
    # Connect's client alone would try for ten minutes
    assert time.time() - saw["closed_at"] < PATIENCE_S, "the program waits for a server that is dead"
    assert gone(state["pid"]) and daemon_states() == []


def check(saw: dict[str, Any]) -> None:
    assert saw["place"] and saw["small"] == [[2]] and saw["ordered"] and saw["python"] == [[9_999_900_000]]
    assert saw["tables"] == [["orders", "spark", "bounded", "no"]]
    assert saw["rows"] == [[3, "text of 3"], [4, "text of 4"]]
    assert any("PushedFilters" in line for (line,) in saw["plan"])
    assert [error[:2] for error in saw["errors"]] == [
        ["RUN-2003", "22018"],
        ["RUN-2001", "22012"],
        ["SQL-1041", "42P01"],
    ]
    assert saw["closed_s"] < PATIENCE_S  # a second, on a machine that is not busy
    assert saw["killed"][0] == "BND-5008" and saw["killed_s"] < PATIENCE_S
    assert saw["after"][0] == "BND-5008"
