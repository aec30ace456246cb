"""What is learned of a slot while it is read."""

from __future__ import annotations

import psycopg
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.postgres_cdc.layouts import ReplicatedTable
from penstock.engine.connectors.postgres_cdc.link import Address, PostgresLink
from penstock.engine.connectors.postgres_cdc.watching import watch
from tests.harness.postgres_server import logical_server

pytestmark = pytest.mark.xdist_group("postgres-cdc")


def test_the_lag_grows_and_a_renamed_table_is_noticed() -> None:
    server = logical_server()
    link = PostgresLink(Address(server.host, server.port, "postgres", server.user, None))
    with psycopg.connect(server.url, autocommit=True) as there:
        there.execute("CREATE TABLE watched (id bigint PRIMARY KEY)")
        there.execute("CREATE PUBLICATION watched_changes FOR TABLE watched")
        there.execute("SELECT pg_create_logical_replication_slot('slot_watched', 'pgoutput')")
        (oid,) = there.execute("SELECT 'watched'::regclass::oid::int").fetchone()
        relation = ReplicatedTable("public.watched", oid, {})
        before = watch(link, "slot_watched", relation, "watched_changes").lag_bytes
        there.execute("INSERT INTO watched SELECT generate_series(1, 1000)")
        assert watch(link, "slot_watched", relation, "watched_changes").lag_bytes > before + 10_000
        there.execute("ALTER PUBLICATION watched_changes DROP TABLE watched")
        with pytest.raises(PenstockError) as raised:
            watch(link, "slot_watched", relation, "watched_changes")
        assert raised.value.code == "DAT-5408"
        there.execute("ALTER TABLE watched RENAME TO gone")
        with pytest.raises(PenstockError) as raised:
            watch(link, "slot_watched", relation, "watched_changes")
        assert raised.value.code == "DAT-5417"
        there.execute("SELECT pg_drop_replication_slot('slot_watched')")
    link.close()
