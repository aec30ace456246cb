"""Jobs on a Spark that is there already: that of ``spark-submit``, its workers in a shipped environment,
and one a program has started itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark.class_data_archive import executors_options
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.jvm_launcher import executors_environment, spark_home
from tests.fault_injection import hosted_job as hosted
from tests.harness.patience import PATIENCE_S

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[5]
MASTER = "local-cluster[1,2,1024]"
ROWS = 100_000
SETTINGS = {**hosted.SETTINGS, "spark.executor.memory": "1g"}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a user's machine would have: a Java, and a home of Spark with space for the directories of
    executors.
    """
    try:
        java = find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    (tmp_path / "spark").mkdir()
    quick = {
        "JDK_JAVA_OPTIONS": " ".join(
            ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *executors_options(java, spark_home() / "jars")]
        )
    }
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        **quick,
        **executors_environment(MASTER, spark_home(), java, tmp_path / "spark"),
    }


def run(words: list[str], environment: dict[str, str], directory: Path) -> str:
    done = subprocess.run(
        words, env=environment, cwd=directory, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def packed(directory: Path) -> Path:
    """Return an archive of an environment: of a Python that is this one and says when it is started."""
    program = directory / "python"
    program.write_text(
        f'#!/bin/sh\n: > "{directory}/started-$$"\nexec {sys.executable} "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)
    with tarfile.open(directory / "packed.tar.gz", "w:gz") as archive:
        archive.add(program, "bin/python")
    return directory / "packed.tar.gz"


@pytest.mark.at_length
def test_a_file_runs_by_spark_submit_in_a_shipped_environment(
    environment: dict[str, str], tmp_path: Path
) -> None:
    sink, query = hosted.count_sql(tmp_path / "out")
    (tmp_path / "job.sql").write_text(
        f"{hosted.numbers_sql(ROWS, 0)};\n{sink};\n{query};\n", encoding="utf-8"
    )
    submit = [
        str(spark_home() / "bin" / "spark-submit"),
        "--master",
        MASTER,
        "--archives",
        f"{packed(tmp_path)}#environment",
    ]
    python = [
        "--conf",
        "spark.pyspark.python=./environment/bin/python",
        "--conf",
        f"spark.pyspark.driver.python={sys.executable}",
    ]
    settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    command = [
        *submit,
        *python,
        str(Path(penstock.__file__).with_name("__main__.py")),
        "run",
        str(tmp_path / "job.sql"),
        *settings,
        "--state",
        str(tmp_path / "state"),
    ]
    run(command, environment, tmp_path)
    assert hosted.wrong_counts(tmp_path / "out", ROWS) == []
    assert list(tmp_path.glob("started-*")), "workers were not started from the archive"


def test_the_spark_of_a_program_hosts_its_jobs_and_is_left_running(
    environment: dict[str, str], tmp_path: Path
) -> None:
    words = [
        sys.executable,
        "-m",
        "tests.unit.engine.deploy.spark.own_session_program",
        str(tmp_path / "out"),
        str(ROWS),
    ]
    saw = json.loads(run(words, environment | {"PYSPARK_PYTHON": sys.executable}, tmp_path).splitlines()[-1])
    assert saw == {
        "hosts": True,
        "names": [[1, "one"], [2, "two"]],
        "application": "a program's own",
        "left": 5,
    }
    assert hosted.wrong_counts(tmp_path / "out", ROWS) == []
