"""A program over the client that ends at some moment in some way: ``python -m tests.fault_injection.ends_program
'{..}'``. It says what it has seen.

``how``: main, exception, exit, close (from another thread), hard (``os._exit``, which is nobody's right);
signals come from outside. ``job``: bounded, endless, both, query. ``moment_s``: after ``ready`` was said.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

import penstock
from tests.fault_injection.ends_tables import declarations


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main(asked: dict[str, Any]) -> None:
    settings = {
        "bounded.backend": "duckdb",
        "execution.batch.max-rows": "500",
        "execution.checkpointing.interval": "30 ms",
    }
    if asked["state"]:
        settings["execution.checkpointing.dir"] = asked["state"]
    connection = penstock.connect(settings=settings)
    for declaration in declarations(asked["root"]):
        connection.execute(declaration)
    if asked["with"]:
        with connection:
            work(connection, asked)
    else:
        work(connection, asked)


def work(connection: penstock.Connection, asked: dict[str, Any]) -> None:
    """Do what the job says, and end in the way that was asked for."""
    how, moment_s, job = asked["how"], asked["moment_s"], asked["job"]
    if how == "close":
        threading.Timer(moment_s, connection.close).start()
    try:
        if job in ("endless", "both"):
            say(f"started {connection.execute('INSERT INTO streamed SELECT a FROM endless').job.job_id}")
        say("ready")
        if job in ("bounded", "both"):
            say(f"finished {connection.execute('INSERT INTO copied SELECT a FROM numbers').rowcount}")
        if job == "query":
            changing = connection.execute("SELECT a % 7, COUNT(*) FROM endless GROUP BY a % 7")
            next(changing.changes())
            counting = connection.execute("SELECT COUNT(*) FROM numbers a, numbers b WHERE a.a + b.a < 0")
            counting.fetchmany(1, timeout=moment_s)
        elif how in ("SIGINT", "SIGTERM"):
            time.sleep(60)
        else:
            time.sleep(moment_s)
    except penstock.Error:
        if how != "close":
            raise
        say("closed under it")
        return
    end(how)


def end(how: str) -> None:
    """End in a way of a program's own."""
    if how == "exception":
        raise RuntimeError("the end")
    if how == "exit":
        sys.exit(7)
    if how == "hard":
        os._exit(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
