"""Workers on Spark without Spark: a stand-in runs each task in a process and, when that dies, runs it
again, as Spark does.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.client.session import Session
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.cluster_options import Certificates, ClusterOptions
from penstock.engine.deploy.coordinator import process_runtime, worker_pool
from penstock.engine.deploy.coordinator.shared_storage_probe import check_probe, leave_probe
from penstock.engine.deploy.coordinator.worker_handle import WorkerState
from penstock.engine.deploy.protocol.connection import ControlConnection
from penstock.engine.deploy.protocol.messages import VERSION, Hello
from penstock.engine.deploy.spark import launcher
from penstock.engine.deploy.spark.code_archive import ROOT, write_archive
from penstock.engine.deploy.spark.hosting_session import HostingSession
from penstock.engine.deploy.worker.registration import misfit, own_facts
from penstock.engine.network.listener_options import Listening, tls_contexts
from penstock.engine.network.tls_stream import SecureStream
from tests.fault_injection import hosted_job as hosted
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.server_process import own_port

ENDLESS = 1_000_000_000
WORK = "import json, sys; from penstock.engine.deploy.spark.worker import work_in_spark; print(work_in_spark(json.load(sys.stdin)))"


class StandIn:
    """Has of a Spark session what hosting uses. ``submitted``: the orders of each job."""

    def __init__(self) -> None:
        self.submitted: list[dict[str, Any]] = []
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.cancelled: set[str] = set()

    def range(self, *_: int) -> StandIn:
        return self

    def mapInArrow(self, orders: dict[str, Any], schema: str, profile: Any) -> _Task:
        self.submitted.append(orders)
        return _Task(self, orders)


class _Task:
    def __init__(self, spark: StandIn, orders: dict[str, Any]) -> None:
        self._spark, self._orders = spark, orders

    def collect(self) -> list[dict[str, str]]:
        for _ in range(4):
            process = subprocess.Popen(
                [sys.executable, "-c", WORK],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self._spark.processes[self._orders["token"]] = process
            said, _ = process.communicate(json.dumps(self._orders))
            if process.returncode == 0:
                return [{"said": said.strip()}]
            if self._orders["token"] in self._spark.cancelled:
                break
        raise OSError("SPARK_JOB_CANCELLED: cancelled")


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    stand_in = StandIn()

    def cancel(session: HostingSession, tag: str) -> None:
        for token, process in stand_in.processes.items():
            stand_in.cancelled.add(token)
            process.kill()

    monkeypatch.setattr(launcher, "worker_function", lambda orders: orders)
    monkeypatch.setattr(HostingSession, "begin", lambda session, tag: stand_in)
    monkeypatch.setattr(HostingSession, "cancel", cancel)
    monkeypatch.setattr(HostingSession, "profile", lambda session, cores: None)
    yield stand_in
    for process in stand_in.processes.values():
        assert process.wait(PATIENCE_S) is not None, "a task was left"


def certificates(folder: Path) -> Certificates:
    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
        "-days",
        "2",
    ]
    subprocess.run([*command, "-subj", "/CN=penstock"], check=True, capture_output=True)
    return Certificates(str(certificate), str(key), str(certificate))


def settings_of(files: Certificates) -> dict[str, str]:
    named = {"certificate": files.certificate, "key": files.key, "ca": files.authority}
    return {f"security.ssl.internal.{name}": path for name, path in named.items()}


def test_a_killed_worker_comes_back_in_its_task_over_tls(spark: StandIn, tmp_path: Path) -> None:
    session = Session(
        {**hosted.SETTINGS, **settings_of(certificates(tmp_path)), "taskmanager.port-range": "20000-39999"}
    )
    job = hosted.started(session, tmp_path / "out", ENDLESS, 60_000)
    pid = hosted.worker_pid(job)
    hosted.outage_s(job, hosted.kill(pid))
    assert len(spark.submitted) == 2, "the task that was run again was to be used, not another"
    assert hosted.worker_pid(job) != pid
    assert hosted.drained(job, tmp_path / "out") == []
    assert job.metrics().workers_lost == 1
    await_that(
        lambda: not session.state.jobs.manager.worker_processes(),
        "the return of the cores with the job's end",
    )
    session.close()


@pytest.mark.at_length
def test_a_stopped_worker_is_replaced_by_another_task(spark: StandIn, tmp_path: Path) -> None:
    session = Session({**hosted.SETTINGS, "parallelism.default": "1"})
    job = hosted.started(session, tmp_path / "out", ENDLESS, 60_000)
    hosted.outage_s(job, hosted.stand_still(job))
    assert len(spark.submitted) == 2
    assert hosted.drained(job, tmp_path / "out") == []
    session.close()


@pytest.mark.parametrize("stolen", [False, True])
def test_a_worker_registers_once(spark: StandIn, stolen: bool) -> None:
    pool = worker_pool.WorkerPool(SystemClock(), launcher.SparkTasks(ClusterOptions()))
    try:
        (worker,) = pool.take(1, 5_000)
        await_that(lambda: worker.state is WorkerState.IDLE, "an idle worker")
        token = worker.container.token if stolen else "guessed"
        second = ControlConnection(socket.create_connection(pool.address), "test")
        second.send(Hello(worker.number, VERSION, token, own_facts()))
        assert second.receive(5) is None
        assert pool.admission.refusals.refused == 1
        assert pool.workers() == [worker]
    finally:
        pool.close()
    assert "its connection ended" in (worker.container.ended() or "")


def test_a_job_nobody_gives_cores_is_told(
    monkeypatch: pytest.MonkeyPatch, spark: StandIn, tmp_path: Path
) -> None:
    monkeypatch.setattr(_Task, "collect", lambda task: time.sleep(2) or [{"said": "never"}])
    session = Session({**hosted.SETTINGS, "taskmanager.registration-timeout": "300 ms"})
    session.execute(hosted.numbers_sql(1000, 1000))
    with pytest.raises(PenstockError, match=r"has not registered within 0\.3 s") as late:
        session.execute("SELECT COUNT(*) AS c FROM numbers").final_rows()
    assert late.value.code == "RUN-2925"
    session.close()


def test_a_python_without_our_libraries_is_told_and_not_tried_for_ever(
    monkeypatch: pytest.MonkeyPatch, spark: StandIn
) -> None:
    def collect(task: _Task) -> list[dict[str, str]]:
        raise PySparkException(
            "Job aborted: Task 0 failed\n  import pyarrow as pa\nModuleNotFoundError: No module named 'pyarrow'\n"
        )

    monkeypatch.setattr(_Task, "collect", collect)
    session = Session({**hosted.SETTINGS, "restart-strategy.attempts": "1000000"})
    session.execute(hosted.numbers_sql(1000, 1000))
    with pytest.raises(
        PenstockError, match="have a Python without ours: No module named 'pyarrow'"
    ) as refused:
        session.execute("SELECT COUNT(*) AS c FROM numbers").final_rows()
    assert refused.value.code == "RUN-2921" and "PYSPARK_PYTHON" in str(refused.value.hint)
    session.close()


def test_the_oracle_tells_rows_lost_and_rows_twice(tmp_path: Path) -> None:
    def written(*counts: tuple[str, int, int, int]) -> list[str]:
        rows = [json.dumps(dict(zip("wkcs", count, strict=True))) for count in counts]
        (tmp_path / "part").write_text("\n".join(rows) + "\n", encoding="utf-8")
        return hosted.wrong_counts(tmp_path, 3)

    assert written(("w", 1, 2, 3), ("w", 2, 1, 3)) == []
    assert written(("w", 1, 2, 3)) == ["2 rows were counted of 3, their sum is 3"]
    assert (
        written(("w", 1, 2, 3), ("w", 2, 1, 3), ("w", 2, 1, 3))[0] == "window w of key 2 was written 2 times"
    )


def test_other_libraries_are_refused_and_both_are_named() -> None:
    mine = own_facts()
    assert misfit(mine, mine) is None
    other = replace(mine, host="far", python="3.9.1", libraries=(("pyarrow", "1.0"), *mine.libraries[1:]))
    error = misfit(other, mine)
    assert error is not None and error.code == "RUN-2921"
    ours = dict(mine.libraries)["pyarrow"]
    minor = ".".join(mine.python.split(".")[:2])
    assert (
        error.message == f"the worker on far has Python 3.9 instead of {minor}, pyarrow 1.0 instead of {ours}"
    )


def test_a_directory_that_is_not_shared_is_told(tmp_path: Path) -> None:
    path, text = leave_probe(tmp_path / "job")
    check_probe(path, text)
    for wrong in ((path, "other"), (tmp_path / "elsewhere" / "probe", text)):
        with pytest.raises(PenstockError, match="does not see the job's directory") as unseen:
            check_probe(*wrong)
        assert unseen.value.code == "RUN-2922"


UNPACKED = """
import sys
from penstock.engine.deploy.spark.entry_point import worker_function
shipped, port = sys.argv[1], int(sys.argv[2])
sys.path.append(shipped)
orders = {"worker": 7, "token": "t", "address": ["127.0.0.1", port], "ports": [0, 0], "certificates": None, "encrypted": True,
          "directory": "/", "code": shipped.rpartition("/")[2], "root": "/nonexistent"}
(rows,) = worker_function(orders)(iter([]))
print(rows.to_pylist()[0]["said"])
print(sys.modules["penstock"].__file__)
"""


def test_what_is_shipped_is_the_same_each_time_and_is_what_runs(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    first, second = write_archive(tmp_path / "a"), write_archive(tmp_path / "b")
    assert (first.name, first.read_bytes()) == (second.name, second.read_bytes())
    port = own_port()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", UNPACKED, str(first), str(port)]
    said = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[0].startswith(f"it cannot reach the job at 127.0.0.1:{port}: ")
    assert said[1] == str(tmp_path / "cache" / "penstock" / "code" / first.stem / "penstock" / "__init__.py")


def test_settings_of_the_cluster() -> None:
    settings = Settings(
        {"spark.master": "local[2]", "spark.hadoop.fs.S3": "x", "taskmanager.port-range": "50100-50199"}
    )
    options = ClusterOptions.from_settings(settings)
    assert options.spark == (("spark.hadoop.fs.S3", "x"), ("spark.master", "local[2]"))
    assert options.ports == (50100, 50199)
    assert dict(settings.items())["spark.hadoop.fs.S3"] == "x"
    session = Session({"spark.hadoop.fs.s3a.secret.key": "x"})
    session.state.statement_log.begin("INSERT INTO t SELECT 1", ())
    record = session.state.statement_log.record(session.settings, "job")
    assert record is not None and record.withheld and record.settings == ()
    session.close()
    for wrong in ("x", "5-4", "0-9", "70000"):
        settings.set("taskmanager.port-range", wrong)
        with pytest.raises(PenstockError) as refused:
            ClusterOptions.from_settings(settings)
        assert refused.value.code == "SQL-1402"
    settings.reset()
    settings.set("security.ssl.internal.key", "k")
    with pytest.raises(PenstockError) as refused:
        ClusterOptions.from_settings(settings)
    assert refused.value.code == "SQL-1406"


def test_ports_are_of_the_range_or_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PenstockError, match="all are in use") as refused:
            Listening(ports=(port, port)).listener(1)
        assert refused.value.code == "NET-5016"
        with Listening(ports=(port, min(port + 20, 65535))).listener(1) as listener:
            assert port < listener.getsockname()[1] <= port + 20


def test_a_stranger_without_a_certificate_is_not_heard(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    with pytest.raises(PenstockError) as unusable:
        tls_contexts(Certificates(files.key, files.key, files.authority))
    assert unusable.value.code == "NET-5015"
    pool = worker_pool.WorkerPool(SystemClock(), launcher.SparkTasks(ClusterOptions(certificates=files)))
    try:
        with socket.create_connection(pool.address) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            plain.settimeout(5)
            assert plain.recv(100)[:1] in (b"", b"\x15"), "an alert of TLS or nothing"
        stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(pool.address) as bare, pytest.raises(OSError):
            stream = SecureStream(bare, stranger, server=False)
            if stream.recv_into(memoryview(bytearray(10))) == 0:
                raise ConnectionResetError
        await_that(lambda: pool.admission.refusals.refused >= 2, "the refusal of two")
        assert pool.admission.refusals.refused == 2
    finally:
        pool.close()


@pytest.mark.parametrize("connector", ["delta", "filesystem"])
@pytest.mark.parametrize("seen", [True, False])
def test_new_rows_of_an_overwrite_lie_where_workers_see_them(
    spark: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, connector: str, seen: bool
) -> None:
    """A worker that writes them elsewhere would leave this program an empty table."""
    pytest.importorskip("deltalake", reason="the extra delta is not installed")
    state = tmp_path / "state"
    session = Session(
        {**hosted.SETTINGS, "parallelism.default": "1", "execution.checkpointing.dir": str(state)}
    )
    place = {"delta": "'table-path' = '{}'", "filesystem": "'path' = '{}', 'format' = 'parquet'"}[connector]
    place = place.format(tmp_path / "t")
    session.execute(f"CREATE TABLE t (n BIGINT) WITH ('connector' = '{connector}', {place})")
    session.execute(hosted.numbers_sql(1000, 1000))
    session.execute("INSERT OVERWRITE t VALUES (7)")
    overwrite = "INSERT OVERWRITE t SELECT COUNT(*) FROM numbers EMIT FINAL"
    if seen:
        session.execute(overwrite)
    else:
        probe = process_runtime.leave_probe
        monkeypatch.setattr(
            process_runtime, "leave_probe", lambda place: (probe(place)[0], "of another disk")
        )
        with pytest.raises(PenstockError, match="RUN-2922"):
            session.execute(overwrite)
    session.execute("SET 'deployment' = 'embedded'")
    found = session.execute("SELECT n FROM t").final_rows(PATIENCE_S).column("n").to_pylist()
    assert found == ([1000] if seen else [7])
    assert [path for path in tmp_path.rglob("*overwrite*") if path.name != ".penstock.overwrites"] == []
    assert not list((tmp_path / "t").rglob(".penstock.state"))
    session.close()
