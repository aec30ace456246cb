"""Connections that are opened at a position, and the slots they leave behind."""

from __future__ import annotations

import psycopg
import pytest

from penstock.catalog.types import BIGINT
from penstock.engine.connectors.postgres_cdc.key_ranges import KeyRanges
from penstock.engine.connectors.postgres_cdc.link import CopyMessages
from penstock.engine.connectors.postgres_cdc.opening import Progress, open_at, stream_after_copy
from tests.harness.cdc_reading import cdc_table
from tests.harness.patience import await_that
from tests.harness.postgres_server import logical_server

pytestmark = pytest.mark.xdist_group("postgres-cdc")


@pytest.mark.parametrize("resumes", [True, False])
def test_a_slot_stays_only_for_a_job_that_resumes(resumes: bool) -> None:
    server, name = logical_server(), f"opened_{str(resumes).lower()}"
    with psycopg.connect(server.url, autocommit=True) as there:
        there.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY)")
        there.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL; INSERT INTO {name} VALUES (1)")
        # other tests of this server leave slots behind
        mine = "SELECT temporary, active FROM pg_replication_slots WHERE database = 'postgres' AND slot_name = %s"
        table, progress = cdc_table(server, name, {"id": BIGINT}), Progress(KeyRanges(), snapshot=True)
        opened = open_at(table, (0,), progress, resumes=resumes)
        assert opened.copying and progress.ranges.items == [[None, progress.position]]
        assert there.execute(mine, [opened.slot]).fetchall() == [(not resumes, not resumes)]
        temporary = "SELECT count(*) FROM pg_replication_slots WHERE temporary"
        assert there.execute(temporary).fetchone() == (0 if resumes else 1,)
        messages = CopyMessages()
        while opened.sql.drain(messages):
            pass
        assert bytes(messages.data[: messages.used]) == b"1\n"
        progress.snapshot = False
        stream_after_copy(table, opened)
        assert there.execute(mine, [opened.slot]).fetchall() == [(not resumes, True)]
        opened.close()

        def state() -> list[tuple[bool, bool]]:
            return there.execute(mine, [opened.slot]).fetchall()

        await_that(lambda: state() == ([(False, False)] if resumes else []))
        if resumes:
            there.execute("SELECT pg_drop_replication_slot(%s)", [opened.slot])
