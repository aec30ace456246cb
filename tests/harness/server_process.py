"""Servers of other projects that tests start as processes, and what all tests of a process share of them."""

from __future__ import annotations

import functools
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from tests.harness.patience import await_that

T = TypeVar("T")

_FIRST_PORT, _PORTS = 20_000, 12_000
"""Below those that systems choose for clients, and for servers that ask for port 0."""
_tried = itertools.count(os.getpid() * 37)
_held: list[socket.socket] = []


def own_port(*hosts: str) -> int:
    """Return a port at which nobody listens, for the rest of this process's life no other test process's.

    ``hosts``: at which addresses it must be free, 127.0.0.1 where none is named. A port that was only looked
    for would be anybody's again until its server begins: a server of another test, or a client's end of a
    connection.
    """
    for number in itertools.islice(_tried, _PORTS):
        port = _FIRST_PORT + number % _PORTS
        lock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            # ports of datagrams are others: no server minds, and no second process gets this one
            lock.bind(("127.0.0.1", port))
            for host in hosts or ("127.0.0.1",):
                socket.create_server((host, port)).close()
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return port
    raise AssertionError(f"no port of {_FIRST_PORT} to {_FIRST_PORT + _PORTS - 1} is free")


@functools.cache
def _reaper() -> subprocess.Popen[str]:
    # a session of its own: signals to the group of the tests are not for it
    return subprocess.Popen(
        [sys.executable, "-I", "-S", Path(__file__).with_name("reaper.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )


def end_with_this_process(
    pid: int, *, ends_with: signal.Signals = signal.SIGKILL, directory: str | Path | None = None
) -> None:
    """End a process when this one has ended, also by a signal or ``os._exit``; then remove its directory."""
    pipe = _reaper().stdin
    assert pipe is not None
    pipe.write(json.dumps([pid, int(ends_with), None if directory is None else str(directory)]) + "\n")
    pipe.flush()


def end_spark_with_this_process() -> None:
    """End each Java machine of Spark that this process starts from now on when the process has ended.

    Python's end of the pipe ends one too, but only after its query, and what a child of ours has inherited
    keeps the pipe open.
    """
    from penstock.engine.bounded.spark.jvm_launcher import SparkJvm

    begin = SparkJvm.__init__

    def begin_watched(
        self: SparkJvm, process: subprocess.Popen[bytes], java: Any, directory: Path, *rest: Any
    ) -> None:
        begin(self, process, java, directory, *rest)
        # tests of single parts have stand-ins for processes
        if isinstance(process, subprocess.Popen):
            end_with_this_process(process.pid, directory=directory)

    SparkJvm.__init__ = begin_watched  # type: ignore[method-assign]


def start_server(
    command: Sequence[str | Path], *, directory: Path | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """Start a server that says nothing and ends with this process. ``directory``: is removed then."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **silent)
    end_with_this_process(process.pid, directory=directory)
    return process


def await_port(process: subprocess.Popen[bytes], name: str, *ports: int, host: str = "127.0.0.1") -> None:
    """Wait until a server listens at all of its ports. AssertionError as soon as it has ended."""

    def listens() -> bool:
        assert process.poll() is None, f"{name} ended with {process.returncode} while it started"
        try:
            for port in ports:
                socket.create_connection((host, port), 1).close()
        except OSError:
            return False
        return True

    await_that(listens, name)


class SharedServer(Generic[T]):
    """A server of all tests of this process, started by the first that asks for it.

    Where it did not start, or has ended, each test fails at once and says so: its clients alone would wait
    half a minute in each. A skip is kept as well.
    """

    def __init__(self, name: str, start: Callable[[], T], runs: Callable[[T], object]) -> None:
        self._name, self._start, self._runs = name, start, runs
        self._server: T | None = None
        self._failure: BaseException | None = None

    def get(self) -> T:
        """Return the server."""
        if isinstance(self._failure, pytest.skip.Exception):
            raise self._failure
        if self._failure is not None:
            raise AssertionError(f"{self._name} did not start: {self._failure}")
        if self._server is None:
            try:
                self._server = self._start()
            except (Exception, pytest.skip.Exception) as failure:
                self._failure = failure
                raise
        assert self._runs(self._server), f"{self._name} has ended, which earlier tests used"
        return self._server
