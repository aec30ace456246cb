"""A standalone cluster of Spark on this machine, started from the package: a master and workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.jvm_launcher import executors_environment, spark_home
from tests.harness.patience import PATIENCE_S


class Cluster:
    """Runs while it is entered. ``master``: its address; ``directory`` holds logs and the executors'
    directories; in place of those ``hidden`` the workers see empty ones, as on another machine.
    """

    def __init__(self, directory: Path, workers: int, hidden: Sequence[Path] = ()) -> None:
        self.master = ""
        self._hidden = hidden
        self._directory = directory
        self._count = workers
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True)
        try:
            log = self._start(
                "master",
                "org.apache.spark.deploy.master.Master",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--webui-port",
                "0",
            )
            self.master = self._await(log, r"Starting Spark master at (spark://\S+)")
            for number in range(self._count):
                place = self._directory / f"worker-{number}"
                words = [
                    "--host",
                    "127.0.0.1",
                    "--cores",
                    "1",
                    "--memory",
                    "1g",
                    "--webui-port",
                    "0",
                    "--work-dir",
                    str(place),
                    self.master,
                ]
                log = self._start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *words)
                self._await(log, "Successfully registered with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, name: str, program: str, *words: str) -> Path:
        home = spark_home()
        private = self._directory / f"{name}-home"
        private.mkdir()
        environment = {
            **os.environ,
            **executors_environment("local-cluster[", home, find_java(), private),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }
        environment.pop("PYTHONPATH", None)
        log = self._directory / f"{name}.log"
        with log.open("wb") as said:
            command = [str(home / "bin" / "spark-class"), program, *words]
            if self._hidden and name != "master":
                # a mount namespace of its own; -r is for users who are not root
                mounts = "".join(f"mount -t tmpfs none '{path}' && " for path in self._hidden)
                command = ["unshare", "-r", "-m", "sh", "-c", f'{mounts}exec "$@"', "sh", *command]
            self._processes.append(
                subprocess.Popen(command, stdout=said, stderr=said, env=environment, start_new_session=True)
            )
        return log

    def _await(self, log: Path, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while (found := re.search(pattern, log.read_text(errors="replace"))) is None:
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            time.sleep(0.05)
        return found[1] if found.groups() else found[0]
