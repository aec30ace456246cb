"""The servers that tests start: they end with the process of the tests, however that ends, and one that is gone
is said at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.harness.forked_process import ForkedProcess, start_command_line
from tests.harness.kafka_broker import KafkaTopics
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.reaper import began
from tests.harness.server_process import SharedServer, await_port, own_port, start_server

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import faulthandler, os, signal, sys, time
from pathlib import Path
from tests.harness.server_process import start_server
server = start_server([sys.executable, "-c", "import time; time.sleep(600)"], directory=Path(sys.argv[1]))
print(server.pid, flush=True)
{}
time.sleep(600)
"""
# a machine without a gateway, which does not end with its standard input
SPARK = """
import os, signal, subprocess, sys
from pathlib import Path
from penstock.engine.bounded.spark.jvm_launcher import SparkJvm
from tests.harness.server_process import end_spark_with_this_process
end_spark_with_this_process()
process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
SparkJvm(process, None, Path(sys.argv[1]), None)
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
ENDS = (
    "os._exit(1)",
    "os.kill(os.getpid(), signal.SIGKILL)",
    "os.kill(os.getpid(), signal.SIGTERM)",
    "faulthandler.dump_traceback_later(0.01, exit=True)",
    "sys.exit()",
)


@pytest.mark.parametrize("program", [*(PROGRAM.format(end) for end in ENDS), SPARK], ids=[*ENDS, "Spark"])
def test_a_server_ends_with_the_process_that_started_it(program: str, tmp_path: Path) -> None:
    directory = tmp_path / "server"
    directory.mkdir()
    words = [sys.executable, "-c", program, str(directory)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    await_that(lambda: not began(int(done.stdout)), "the end of the server")
    await_that(lambda: not directory.exists(), "the end of its directory")


def test_a_shared_server_that_does_not_start_fails_each_test_at_once() -> None:
    starts = []

    def start() -> None:
        starts.append(1)
        raise RuntimeError("no such program")

    server = SharedServer("the broker", start, lambda _: True)
    with pytest.raises(RuntimeError):
        server.get()
    for _ in range(2):
        with pytest.raises(AssertionError, match="the broker did not start: no such program"):
            server.get()
    assert len(starts) == 1


def test_a_skip_stays_one() -> None:
    server = SharedServer[None]("the broker", lambda: pytest.skip("not installed"), lambda _: True)
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception, match="not installed"):
            server.get()


def test_a_shared_server_that_has_ended_is_said_at_once() -> None:
    server = SharedServer(
        "the broker",
        lambda: start_server([sys.executable, "-c", "import time; time.sleep(600)"]),
        lambda process: process.poll() is None,
    )
    topics = KafkaTopics("127.0.0.1:1", server.get)
    process = server.get()
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = time.monotonic()
    for ask in (server.get, topics.create):
        with pytest.raises(AssertionError, match="the broker has ended, which earlier tests used"):
            ask()
    # the client of the broker waits 30 s for it
    assert time.monotonic() - before < 20


def test_a_server_that_ends_while_it_starts_is_waited_for_no_longer() -> None:
    process = start_server([sys.executable, "-c", "raise SystemExit(7)"])
    with pytest.raises(AssertionError, match="the store ended with 7 while it started"):
        await_port(process, "the store", own_port())


def test_a_forked_command_line_ends_as_a_new_process_does(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PENSTOCK_CONFIG": "/nonexistent"}
    said = tmp_path / "said"
    (tmp_path / "wrong.sql").write_text("SELEC 1;", encoding="utf-8")

    def start(run: int, *words: str) -> ForkedProcess | subprocess.Popen[bytes]:
        with said.open("wb") as file:
            return start_command_line(words, tmp_path, environment, file, run=run)

    assert start(1, "--version").wait(PATIENCE_S) == 0 and said.read_text().startswith("penstock ")
    # the directory and the exit code are those of the child
    assert start(1, "run", "wrong.sql").wait(PATIENCE_S) == 1 and "SQL-1001" in said.read_text()
    killed = start(1, "-c", "SELECT 1")
    assert killed.poll() is None
    killed.kill()
    assert killed.wait(PATIENCE_S) == killed.poll() == -signal.SIGKILL
    killed.kill()


def test_ports_are_those_of_one_process() -> None:
    program = (
        "from tests.harness.server_process import own_port; print(*[own_port() for _ in range(50)]); input()"
    )
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = {int(word) for word in other.stdout.readline().split()}
        ours = {own_port() for _ in range(200)}
        assert (len(theirs), len(ours)) == (50, 200)
        assert not theirs & ours
        other.communicate("\n", timeout=PATIENCE_S)
