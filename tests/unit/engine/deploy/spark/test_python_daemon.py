"""The process workers of Spark are forked from: what it has imported, that it may be forked, and what a
Spark is started with for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.engine.api.cluster_options import ClusterOptions
from penstock.engine.bounded.spark.class_data_archive import SWITCH, archive_file
from penstock.engine.bounded.spark.java_runtime import Java
from penstock.engine.bounded.spark.jvm_launcher import spark_home
from penstock.engine.deploy.spark import penstock_daemon
from penstock.engine.deploy.spark.code_archive import ROOT
from penstock.engine.deploy.spark.hosting_session import hosting_additions
from penstock.engine.deploy.spark.launcher import SparkTask, SparkTasks
from tests.harness.patience import PATIENCE_S

IMPORTED = """
import json, os, sys
import penstock_daemon
import pyspark.daemon
{before}
def manager():
    names = ("numba", "pyarrow", "pyspark.worker", "penstock.engine.operators.window.window_aggregate")
    roots = [sys.modules[name].__file__ for name in ("penstock",) if name in sys.modules]
    print(json.dumps([len(os.listdir("/proc/self/task")), [name in sys.modules for name in names], roots, sys.path]))
pyspark.daemon.manager = manager
penstock_daemon.main()
"""


def as_daemon(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code where Spark would run the daemon: the module alone lies in the working directory, and our
    packages on no path.
    """
    (folder / "penstock_daemon.py").write_bytes(Path(penstock_daemon.__file__).read_bytes())
    said = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said |= {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder), **environment}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=said,
        input="",
        capture_output=True,
        text=True,
        encoding="latin-1",
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_it_has_imported_what_workers_need_and_has_one_thread(tmp_path: Path) -> None:
    done = as_daemon(tmp_path, IMPORTED.format(before=""), PENSTOCK_ROOT=str(ROOT))
    threads, imported, roots, path = json.loads(done.stdout)
    assert (threads, imported) == (1, [True] * 4), done.stderr
    assert roots == [str(ROOT / "penstock" / "__init__.py")] and str(ROOT) not in path


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_with_a_second_thread_it_becomes_sparks_own(tmp_path: Path) -> None:
    thread = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    done = as_daemon(
        tmp_path,
        IMPORTED.format(before=thread),
        PENSTOCK_ROOT="/nonexistent",
        PYTHON_WORKER_FACTORY_SECRET="s",
    )
    assert len(done.stdout) == 4, "Spark's own says its port, and ends with its input"


def test_code_that_is_not_there_does_not_keep_spark_from_working(tmp_path: Path) -> None:
    (tmp_path / "root" / "penstock").mkdir(parents=True)
    (tmp_path / "root" / "penstock" / "__init__.py").write_text("raise ModuleNotFoundError('half of it')")
    done = as_daemon(tmp_path, IMPORTED.format(before=""), PENSTOCK_ROOT=str(tmp_path / "root"))
    assert json.loads(done.stdout)[1][2] is True and "ModuleNotFoundError" in done.stderr


def test_a_cluster_forks_from_it_and_a_user_who_says_otherwise_is_heard() -> None:
    added = hosting_additions(
        {"spark.master": "spark://head:7077", "spark.files": "a.txt", "spark.speculation": "true"}
    )
    assert added["spark.python.daemon.module"] == "penstock_daemon"
    assert added["spark.files"] == f"a.txt,{penstock_daemon.__file__}"
    assert "spark.speculation" not in added
    for master in (
        {},
        {"spark.master": "local"},
        {"spark.master": "local[2]"},
        {"spark.master": "local[*,3]"},
        {"spark.python.daemon.module": "mine"},
    ):
        assert "spark.files" not in hosting_additions(master), master
    assert "spark.files" in hosting_additions({"spark.master": "local-cluster[2,1,1024]"})


def test_executors_use_the_archive_of_classes_when_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = Java(Path("/opt/java/bin/java"), 17, has_vector=True, origin="a test", build="17.0.1")
    monkeypatch.setattr("penstock.engine.deploy.spark.hosting_session.find_java", lambda: java)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(SWITCH, raising=False)

    def options() -> str:
        return hosting_additions({"spark.master": "spark://head:7077"})["spark.executor.defaultJavaOptions"]

    assert "SharedArchiveFile" not in options()
    archive = archive_file(java, spark_home() / "jars")
    archive.parent.mkdir()
    archive.write_bytes(b"archive")
    assert options().endswith(f"-XX:SharedArchiveFile={archive}")
    monkeypatch.setenv(SWITCH, "off")
    assert "SharedArchiveFile" not in options()


def test_a_task_that_spark_will_not_run_again_waits_for_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = SparkTasks(ClusterOptions())
    task = tasks.container(1)
    assert isinstance(task, SparkTask)
    for _ in range(3):
        task.disconnected()
        assert tasks.lasting() == [task]
    task.disconnected()
    assert tasks.lasting() == []
