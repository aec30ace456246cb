"""Starts command lines of penstock as forks of a process that has imported it: ``python fork_server.py FD``.

Three quarters of the processor time of a short job are imports. The socket ``FD`` brings orders, each with the
file that the child writes to, and takes answers: the child's process, and how it has ended. When the socket is
closed the server ends. Its children do not.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import time
from typing import Any

MESSAGE_BYTES = 1 << 20
_PRELOADED = (
    "penstock.repl.commands.run",
    "penstock.client.session",
    "penstock.client.server.control_socket",
    "penstock.client.server.flight.flight_listener",
    "penstock.engine.connectors.filesystem.sink",
    "pyarrow.parquet",
    "pyarrow.dataset",
)
_PRELOADED_PACKAGES = ("penstock.engine.operators", "penstock.engine.state")


def main() -> None:
    """Import everything, then fork for each order. A child returns from here with its own end."""
    # a script's directory comes first on the path, and has modules with common names
    sys.path.pop(0)
    _preload()
    answers = socket.socket(fileno=int(sys.argv[1]))
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    # a Ctrl-C is for the tests
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with selectors.DefaultSelector() as selector:
        selector.register(answers, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = [key.fd for key, _ in selector.select()]
            if woken in ready:
                os.read(woken, 4096)
                _tell_of_the_ended(answers)
            if answers.fileno() in ready:
                text, files, _, _ = socket.recv_fds(answers, MESSAGE_BYTES, 1)
                if not text:
                    return
                child = os.fork()
                if not child:
                    break
                os.close(files[0])
                answers.send(json.dumps({"began": child}).encode())
    for file in (woken, wakes):
        os.close(file)
    answers.close()
    _become(json.loads(text), files[0])


def _preload() -> None:
    from penstock.repl.launch.pandas_probe import settle

    # as the command line does it, before anything converts a value
    settle()
    for name in _PRELOADED:
        importlib.import_module(name)
    for name in _PRELOADED_PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    # a search for garbage in a child would copy the pages that it shares with the others
    gc.collect()
    gc.freeze()


def _tell_of_the_ended(answers: socket.socket) -> None:
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not child:
            return
        answers.send(json.dumps({"ended": child, "code": os.waitstatus_to_exitcode(status)}).encode())


def _become(order: dict[str, Any], output: int) -> None:
    """Be what ``python -m MODULE WORDS`` is."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    os.chdir(order["directory"])
    sys.path.insert(0, order["directory"])
    sys.argv = [order["module"], *order["words"]]
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
