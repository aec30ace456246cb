"""A worker inside a Python worker of Spark. It runs the same messages and tasks as a process of our own, and
leaves nothing behind when it ends.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.cluster_options import Certificates
from penstock.engine.deploy.protocol.connection import ControlConnection
from penstock.engine.deploy.protocol.messages import VERSION, Hello
from penstock.engine.deploy.worker.environment import ProcessMeans
from penstock.engine.deploy.worker.main import Worker
from penstock.engine.deploy.worker.registration import own_facts
from penstock.engine.network.listener_options import Listening, tls_contexts
from penstock.engine.network.tls_stream import SecureStream

CONNECT_S = 10.0
LEAVE_S = 5.0


def work_in_spark(orders: Mapping[str, Any]) -> str:
    """Connect to the coordinator of ``orders``, run its tasks until it ends the connection, and return how
    that ended.

    Spark uses the process again, so it sets no signal handlers, and restores the working directory and closes
    its sockets. Tasks that do not close end the process.
    """
    certificates = (
        None
        if orders["certificates"] is None
        else Certificates(*(_resolve_file(path) for path in orders["certificates"]))
    )
    before = Path.cwd()
    if Path(orders["directory"]).is_dir():  # relative paths of tables mean the same as in the program
        os.chdir(orders["directory"])
    try:
        return _work(orders, certificates)
    except (OSError, PenstockError) as cause:
        return f"it cannot reach the job at {orders['address'][0]}:{orders['address'][1]}: {cause}"
    finally:
        os.chdir(before)


def _work(orders: Mapping[str, Any], certificates: Certificates | None) -> str:
    tls = None if certificates is None else tls_contexts(certificates)
    with contextlib.ExitStack() as closing:
        connected = closing.enter_context(
            socket.create_connection(tuple(orders["address"]), timeout=CONNECT_S)
        )
        # messages are small and awaited: no delay to collect them
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # ports that peers may connect to; a firewall may open only these
        first, last = orders["ports"]
        clock = SystemClock()
        # peers connect to the address from which this machine has reached the coordinator
        listening = Listening(connected.getsockname()[0], (first, last), tls, orders["encrypted"])
        connection = ControlConnection(
            connected if tls is None else SecureStream(connected, tls.client, server=False), "worker-control"
        )
        connection.send(Hello(orders["worker"], VERSION, orders["token"], own_facts()))
        worker = Worker(connection, clock, ProcessMeans(clock, listening))
        try:
            worker.run()
        finally:
            # closed first, so that the coordinator sees the end before the tasks are closed
            connection.close()
            if not worker.leave(LEAVE_S):
                os._exit(1)  # a task is in a step that does not end: Spark shall not use this process again
    return "its connection ended"


def _resolve_file(path: str) -> str:
    """Return a file's path, or the path where Spark has shipped the file of that name (``spark.files``)."""
    if Path(path).is_file():
        return path
    from pyspark import SparkFiles  # there for sure: this is Spark's process

    return str(Path(SparkFiles.get(Path(path).name)).absolute())
