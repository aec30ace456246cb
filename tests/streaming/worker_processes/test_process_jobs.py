"""Jobs on worker processes: the same answers, also when a worker is killed or stopped; nothing of a
deployment that is over gets through.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.api.clock import SystemClock
from penstock.engine.checkpoint.snapshot_format import WrittenTask
from penstock.engine.deploy.coordinator import job_workers
from penstock.engine.deploy.coordinator.job_workers import Member, ProcessWorkers, Underway
from penstock.engine.deploy.coordinator.worker_handle import WorkerState
from penstock.engine.deploy.coordinator.worker_pool import WorkerPool
from penstock.engine.deploy.protocol.connection import ControlConnection
from penstock.engine.deploy.protocol.messages import VERSION, DeploymentId, Hello, Prepare, Prepared, ToTasks
from penstock.engine.deploy.worker.deployment import WorkerTasks
from penstock.engine.deploy.worker.environment import ProcessMeans
from penstock.engine.deploy.worker.main import Worker
from penstock.engine.job.job import Job
from penstock.engine.task.messages import SnapshotCompleted, TaskId
from penstock.engine.task_manager.task_manager import IoThread
from tests.fault_injection import hosted_job as hosted
from tests.harness.case_files import case_files
from tests.harness.patience import PATIENCE_S, await_that
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.oracle import FLIGHTS, assert_same
from tests.unit.engine.network.fault_proxy import FaultProxy

ROOT = Path(__file__).resolve().parents[3]
ROWS = 300_000
MONTHS, FLOWN = 3, 80_789
SETTINGS = {
    "deployment": "processes",
    "parallelism.default": "2",
    "bounded.backend": "duckdb",
    "table.dml-sync": "false",
    "execution.checkpointing.interval": "100 ms",
    "restart-strategy.delay": "50 ms",
}
NUMBERS = f"""CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100000',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{ROWS}')"""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    made = Session(SETTINGS)
    made.execute(NUMBERS)
    yield made
    made.close()


def test_three_acts(tmp_path: Path) -> None:
    flights = tmp_path / "flights"
    flights.mkdir()
    for month in case_files(FLIGHTS, "*")[:MONTHS]:
        (flights / month.name).symlink_to(month)
    text = (
        (ROOT / "queries" / "busy_planes.sql")
        .read_text(encoding="utf-8")
        .replace("queries/data/flights", str(flights))
    )
    script = Script(
        "busy_planes", {**SETTINGS, "execution.batch.max-rows": "1000", "deployment": "embedded"}, text
    )
    try:
        folded = Folded()
        job, channel = script.submit(1, tmp_path / "state", 50)
        run_and_stop(job, channel, folded, 15_000)

        script.session.settings.set("deployment", "processes")
        job, channel = script.submit(2, tmp_path / "state", 50)
        run_and_stop(job, channel, folded, 8_000)
        assert rows_read(job) < FLOWN - 15_000, "act two was to stop in the middle"

        job, channel = script.submit(3, tmp_path / "state", 50)
        run_to_end(job, channel, folded)
        assert len(script.session.state.jobs.manager.worker_processes()) == 3, (
            "the workers of act two were to be used again"
        )
        assert_same(folded.rows, "busy_planes", flights)
    finally:
        script.close()


def started(session: Session, out: Path) -> Job:
    """Start an endless job that counts numbers behind an exchange, and wait until it has got on."""
    name = out.name
    session.execute(
        f"CREATE TABLE {name} (k BIGINT, c BIGINT, s BIGINT) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'debezium-json')"
    )
    endless = "numbers /*+ OPTIONS('fields.n.end' = '1000000000') */"
    job = session.execute(
        f"INSERT INTO {name} SELECT n % 7, COUNT(*), SUM(n) FROM {endless} GROUP BY n % 7"
    ).job
    assert job is not None
    until(lambda: job.metrics().checkpoints_completed >= 2 and rows_read(job) > 20_000, job)
    return job


def until(reached: Callable[[], bool], job: Job) -> None:
    await_that(reached, lambda: f"what was waited for of {job.state}, {job.last_failure}, {job.metrics()}")


def assert_counted_once(job: Job, out: Path) -> None:
    """Stop the job; demand that what was written adds up to each number counted once, up to the one it
    stopped at.
    """
    read = rows_read(job)
    until(lambda: rows_read(job) > read or job.state.terminal, job)  # it goes on
    job.stop()
    assert job.wait(PATIENCE_S)
    assert job.error is None
    left: Counter[tuple[int, int, int]] = Counter()
    for path in sorted(out.glob("part-*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            change = json.loads(line)
            for side, weight in (("before", -1), ("after", 1)):
                if change.get(side):
                    left[change[side]["k"], change[side]["c"], change[side]["s"]] += weight
    last = sum(count * weight for (_, count, _), weight in left.items())
    wanted = Counter((k, len(range(k or 7, last + 1, 7)), sum(range(k or 7, last + 1, 7))) for k in range(7))
    assert +left == wanted


def test_a_killed_worker_is_replaced_and_every_row_counts_once(session: Session, tmp_path: Path) -> None:
    job = started(session, tmp_path / "killed")
    assert job.processes is not None
    first, second = job.processes.processes()
    os.kill(second.pid or 0, signal.SIGKILL)
    until(lambda: job.last_failure is not None, job)
    assert job.last_failure is not None  # noticed by its exit, not by heartbeats that are missing
    assert job.last_failure.message == f"worker {second.number} lost: exit -9"
    until(lambda: len(job.processes.processes()) == 2 and job.processes.processes()[1] is not second, job)
    assert job.processes.processes()[0] is first, "the worker that lives was to be kept"
    assert_counted_once(job, tmp_path / "killed")
    numbers = job.metrics()
    assert (numbers.restarts, numbers.workers_lost) == (1, 1)
    told = [f"{event.kind} {event.text}" for event in numbers.events]
    assert re.match(
        rf"RESTARTING \(RUN-2910: worker {second.number} lost: exit -9\) from checkpoint \d+ taken \d\.\d s ago",
        told[0],
    ), told
    assert re.match(r"RUNNING recovered in \d+\.\d s", told[1]), told


def test_a_stopped_worker_is_lost_and_what_it_says_later_is_not_heard(
    session: Session, tmp_path: Path
) -> None:
    job = started(session, tmp_path / "stopped")
    assert job.processes is not None
    stopped = job.processes.processes()[0]
    os.kill(stopped.pid or 0, signal.SIGSTOP)
    hosted.let_time_pass(stopped)
    until(lambda: job.last_failure is not None, job)
    assert job.last_failure is not None
    assert re.match(rf"worker {stopped.number} lost: no heartbeat for \d+ s", job.last_failure.message)
    assert not Path(f"/proc/{stopped.pid}").exists() or stopped.state is WorkerState.LOST
    assert_counted_once(job, tmp_path / "stopped")


def test_a_broken_link_is_named_and_every_row_counts_once(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxies: list[FaultProxy] = []
    on_body = ProcessWorkers._on_body

    def through_a_proxy(workers: ProcessWorkers, underway: Underway, member: Member, body: Any) -> None:
        if isinstance(body, Prepared):
            proxies.append(FaultProxy((str(body.address[0]), int(body.address[1]))).__enter__())
            body = Prepared(proxies[-1].address)
        on_body(workers, underway, member, body)

    monkeypatch.setattr(ProcessWorkers, "_on_body", through_a_proxy)
    job = started(session, tmp_path / "cut")
    assert job.processes is not None
    workers = job.processes.processes()
    for proxy in proxies[:2]:
        proxy.__exit__()
    until(lambda: job.last_failure is not None, job)
    assert job.last_failure is not None
    assert job.last_failure.code in ("NET-5013", "NET-5014")
    assert re.match(
        rf"the connection with worker-({workers[0].number}|{workers[1].number}) broke",
        job.last_failure.message,
    )
    assert_counted_once(job, tmp_path / "cut")
    assert (job.metrics().restarts, job.metrics().workers_lost) == (1, 0)
    assert job.processes.lost == []
    for proxy in proxies[2:]:
        proxy.__exit__()


def test_rows_come_to_this_process(session: Session) -> None:
    session.register("dims", pa.table({"k": pa.array([1, 2], pa.int64()), "name": ["a", "b"]}))
    few = "numbers /*+ OPTIONS('fields.n.end' = '1000') */ AS n"
    joined = session.execute(
        f"SELECT d.name, COUNT(*) AS c FROM {few} JOIN dims AS d ON n.n % 7 = d.k GROUP BY d.name ORDER BY name"
    )
    assert joined.final_rows().to_pylist() == [{"name": "a", "c": 143}, {"name": "b", "c": 143}]
    many = session.execute("SELECT n FROM numbers /*+ OPTIONS('rows-per-second' = '0') */").final_rows()
    assert many.num_rows == ROWS


def test_a_job_that_has_ended_leaves_no_thread(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer ends workers that do not close their tasks. One was left for half a minute after each job."""
    monkeypatch.setattr(job_workers, "RELEASE_S", 3600.0)
    for _ in range(3):
        few = "numbers /*+ OPTIONS('fields.n.end' = '10', 'rows-per-second' = '0') */"
        assert session.execute(f"SELECT n FROM {few}").final_rows().num_rows == 10
    await_that(lambda: not any(isinstance(thread, threading.Timer) for thread in threading.enumerate()))


def test_what_only_this_process_has_is_refused(session: Session) -> None:
    session.register("endless", ({"a": number} for number in range(10)))
    with pytest.raises(PenstockError, match="iterator of this program") as refused:
        session.execute("SELECT COUNT(*) FROM endless")
    assert refused.value.code == "RUN-2912"


FUNCTIONS = """
import penstock

@penstock.udf(["BIGINT"], "BIGINT", mode="row")
def doubled(n):
    if n == 777:
        raise ValueError("no luck")
    return 2 * n
"""


def test_python_functions_are_imported_by_workers_from_allowed_modules(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_workers.py").write_text(FUNCTIONS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    session.execute("CREATE FUNCTION doubled AS 'of_workers.doubled'")
    few = "numbers /*+ OPTIONS('rows-per-second' = '0', 'fields.n.end' = '{}') */"
    with pytest.raises(PenstockError) as refused:
        session.execute(f"SELECT SUM(doubled(n)) AS s FROM {few.format(100)}")
    assert refused.value.code == "RUN-2913"
    assert "python.modules" in (refused.value.hint or "")
    session.execute("SET 'python.modules' = 'of_workers'")
    assert session.execute(
        f"SELECT SUM(doubled(n)) AS s FROM {few.format(100)}"
    ).final_rows().to_pylist() == [{"s": 10100}]
    with pytest.raises(PenstockError, match="no luck") as failed:
        session.execute(f"SELECT SUM(doubled(n)) AS s FROM {few.format(1000)}").final_rows()
    assert failed.value.code == "RUN-2010"
    assert "of_workers.py, line 7" in failed.value.render()
    session.execute("RESET 'python.modules'")


def test_a_worker_brings_no_parser_and_no_kernels() -> None:
    code = "import sys, penstock.engine.deploy.worker.main; print(sorted({'sqlglot', 'lark', 'numba', 'duckdb', 'pandas', 'pyspark'} & sys.modules.keys()))"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


class WritingTasks(WorkerTasks):
    """Tells only what is on storage, as it should, or, ``hasty``, before."""

    def __init__(self, store: Any, send: Callable[[Any], None], *, hasty: bool) -> None:
        super().__init__(DeploymentId("job", 1, 1), SystemClock(), send, ProcessMeans(SystemClock()))
        self._store = store
        if hasty:
            self._io.submit = lambda work: (send("told"), IoThread.submit(self._io, work))  # type: ignore[method-assign]


@pytest.mark.parametrize("hasty", [False, True])
def test_a_snapshot_is_told_when_it_is_on_storage(hasty: bool) -> None:
    happened: list[str] = []

    class Store:
        def write_task(self, attempt: int, checkpoint_id: int, task: TaskId, operators: Any) -> WrittenTask:
            happened.append("written")
            return WrittenTask(task, (), (), (), ())

    tasks = WritingTasks(Store(), lambda message: happened.append("told"), hasty=hasty)
    tasks._on_report(SnapshotCompleted(1, TaskId(0, 0), 7, ()))
    tasks._io.close()
    assert happened == (["told", "written", "told"] if hasty else ["written", "told"])


class SilentConnection:
    """Stands for the connection of a worker that only listens."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.find_function: Any = None

    def send(self, message: Any) -> None:
        self.sent.append(message)


@pytest.mark.parametrize("fenced", [True, False])
def test_a_worker_refuses_a_deployment_that_is_over(fenced: bool) -> None:
    connection = SilentConnection()
    worker = Worker(connection, SystemClock(), ProcessMeans(SystemClock()), fenced=fenced)  # type: ignore[arg-type]
    for epoch, attempt in ((2, 2), (2, 1), (1, 7)):
        worker.take(ToTasks(DeploymentId("job", epoch, attempt), Prepare("worker-1", "secret", False, ())))
    taken = [message for message in connection.sent if isinstance(message.body, Prepared)]
    assert (worker.stale, len(taken)) == ((2, 1) if fenced else (0, 3)), "without the fence all are taken"


def test_only_a_known_worker_may_connect() -> None:
    pool = WorkerPool(SystemClock())
    try:
        (worker,) = pool.take(1, 5_000)
        address = pool.address
        for hello in (
            Hello(worker.number, VERSION, "guessed"),
            Hello(77, VERSION, worker.container.token),
            Hello(worker.number, VERSION + 1, worker.container.token),
            "hi",
        ):
            connection = ControlConnection(socket.create_connection(address), "test")
            connection.send(hello)
            assert connection.receive(5) is None
        with socket.create_connection(address) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(64))
            assert stranger.recv(1) == b""
        assert pool.admission.refusals.refused == 5
        assert worker.state is not WorkerState.LOST
    finally:
        pool.close()
    assert not pool.scratch.exists()


PROGRAM = """
import sys, time
from penstock.client.session import Session
session = Session({"deployment": "processes", "parallelism.default": "2", "bounded.backend": "duckdb"})
session.execute("CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')")
session.execute("CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole')")
job = session.execute("INSERT INTO hole SELECT COUNT(*) FROM endless GROUP BY n % 3").job
while job.metrics().rows_in < 100:
    time.sleep(0.01)
print(*(worker.pid for worker in job.processes.processes()), job.processes.scratch.parents[1], flush=True)
time.sleep(60)
"""


def test_workers_and_their_files_go_with_their_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    *pids, scratch = parent.stdout.readline().split()
    assert len(pids) == 2
    parent.kill()
    parent.wait()
    await_that(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), f"the end of {pids}")
    await_that(lambda: not Path(scratch).exists(), f"the end of {scratch}")
