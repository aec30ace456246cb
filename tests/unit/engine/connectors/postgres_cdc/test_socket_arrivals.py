"""Notices of bytes: one each time it is armed, none is missed, and none comes after the end."""

from __future__ import annotations

import socket
import threading

from penstock.engine.connectors.postgres_cdc.socket_arrivals import SocketArrivals
from tests.harness.patience import PATIENCE_S, await_that


def test_bytes_are_reported_once_each_time_it_is_armed() -> None:
    ours, server = socket.socketpair()
    reports = threading.Semaphore(0)
    arrivals = SocketArrivals(ours.fileno(), reports.release)
    thread = next(each for each in threading.enumerate() if each.name == "postgres-cdc arrivals")
    server.send(b"before it is armed")
    assert not reports.acquire(timeout=0.02)
    arrivals.arm()
    assert reports.acquire(timeout=PATIENCE_S)
    # they are there still, and it is not armed
    assert not reports.acquire(timeout=0.02)
    ours.recv(100)
    arrivals.arm()
    assert not reports.acquire(timeout=0.02)
    server.send(b"x")
    assert reports.acquire(timeout=PATIENCE_S)
    # it waits for the socket while it is closed, and the connection is closed before
    ours.recv(100)
    arrivals.arm()
    ours.close()
    arrivals.close()
    await_that(lambda: not thread.is_alive())
    server.close()
