"""Jobs that share streams: of one name and of others, each reads every message, and writes its rows once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import penstock
from tests.harness.nats_server import nats_server
from tests.harness.patience import PATIENCE_S
from tests.unit.engine.connectors.nats.streams import add

pytestmark = pytest.mark.xdist_group("nats")
ROWS = 50


def program(url: str, state: Path, name: str, who: str) -> penstock.Connection:
    """Start a job from the stream ``given`` to the stream ``taken``; return its connection."""
    connection = penstock.connect(
        settings={
            "execution.checkpointing.dir": str(state),
            "execution.checkpointing.interval": "20 ms",
            "pipeline.name": name,
            "table.dml-sync": "false",
            "execution.runtime-mode": "streaming",
        }
    )
    options = f"'connector' = 'nats', 'url' = '{url}', 'format' = 'json'"
    connection.execute(
        f"CREATE TABLE given (n BIGINT) WITH ({options}, 'stream' = 'given', 'scan.bounded.mode' = 'latest')"
    )
    connection.execute(
        f"CREATE TABLE taken (who STRING, n BIGINT) WITH ({options}, 'stream' = 'taken', 'subject' = 'taken', "
        "'stream.create' = 'true')"
    )
    connection.execute(f"INSERT INTO taken SELECT '{who}', n FROM given")
    return connection


def test_jobs_of_one_name_and_of_another(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats") as server:
        server.create("given", "given")
        add(server, "given", *range(ROWS))
        jobs = [("a", "copy"), ("b", "copy"), ("b", "other")]
        programs = [program(server.url, tmp_path / state, name, f"{state}/{name}") for state, name in jobs]
        for connection in programs:
            for job in connection.jobs():
                assert job.wait(PATIENCE_S) and job.error is None, job.error
            connection.close()
        values = [json.loads(value) for _, _, value in server.stored("taken", "taken")]
        found = Counter((row["who"], row["n"]) for row in values)
        assert found == Counter((f"{state}/{name}", n) for state, name in jobs for n in range(ROWS))
        # no consumer has a name that two jobs could share
        consumers = server.ask("CONSUMER.LIST.given")["consumers"]
        assert len(consumers) >= len(jobs)
        assert not [found for found in consumers if "durable_name" in found["config"]]
