"""What the server lacks is refused, and the statement of the hint is the cure."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, INT, STRING
from penstock.engine.connectors.postgres_cdc.link import PostgresLink
from penstock.engine.connectors.postgres_cdc.opening import address_of
from penstock.engine.connectors.postgres_cdc.server_checks import TableFacts, checked_server
from tests.harness.cdc_reading import CdcReading, cdc_table
from tests.harness.postgres_server import logical_server

pytestmark = pytest.mark.xdist_group("postgres-cdc")


def checked(name: str, **how: Any) -> TableFacts:
    columns = how.pop("columns", {"id": BIGINT, "name": STRING})
    table = cdc_table(logical_server(), name, columns, **how)
    link = PostgresLink(address_of(table))
    try:
        return checked_server(link, table, tuple(range(len(columns))))
    finally:
        link.close()


def refused(code: str, name: str, **how: Any) -> str:
    with pytest.raises(PenstockError) as raised:
        checked(name, **how)
    assert raised.value.code == code, raised.value
    return str(raised.value.hint)


def statement_of(hint: str) -> str:
    found = re.search(r"run(?: there)?: (.*)", hint)
    assert found, hint
    return found[1]


def test_the_cure_of_each_refusal_is_its_hint() -> None:
    server = logical_server()
    with psycopg.connect(server.url, autocommit=True) as there:
        refused("DAT-4702", "cured")
        there.execute("CREATE TABLE cured (id bigint NOT NULL, name text)")
        there.execute(statement_of(refused("DAT-5405", "cured")))
        there.execute(statement_of(refused("DAT-5406", "cured")))
        facts = checked("cured")
        assert [field.name for field in facts.fields] == ["id", "name"] and facts.keys == (0,)
        # the publication was created
        there.execute("ALTER PUBLICATION penstock_slot_cured SET (publish = 'insert')")
        there.execute(statement_of(refused("DAT-5408", "cured")))
        there.execute("ALTER PUBLICATION penstock_slot_cured SET TABLE cured WHERE (id > 5)")
        there.execute(statement_of(refused("DAT-5408", "cured")))
        there.execute("ALTER PUBLICATION penstock_slot_cured SET TABLE cured (id)")
        there.execute(statement_of(refused("DAT-5408", "cured")))
        there.execute("ALTER PUBLICATION penstock_slot_cured DROP TABLE cured")
        there.execute(statement_of(refused("DAT-5408", "cured")))
        checked("cured")


def test_rights() -> None:
    server = logical_server()
    with psycopg.connect(server.url, autocommit=True) as there:
        there.execute("CREATE TABLE guarded (id bigint PRIMARY KEY, name text)")
        there.execute("ALTER TABLE guarded REPLICA IDENTITY FULL")
        there.execute("CREATE ROLE reader LOGIN")
        there.execute(statement_of(refused("DAT-5404", "guarded", username="reader")))
        there.execute(statement_of(refused("DAT-5408", "guarded", username="reader")))
        # the log knows no policies: the first rows must not either
        there.execute("ALTER TABLE guarded ENABLE ROW LEVEL SECURITY")
        there.execute(statement_of(refused("DAT-5404", "guarded", username="reader")))
        checked("guarded", username="reader")
        reading = CdcReading(cdc_table(server, "guarded", {"id": BIGINT}, username="reader"))
        with pytest.raises(PenstockError, match="may not read changes") as raised:
            reading.reads(lambda: False)
        assert raised.value.code == "DAT-5404"
        reading.close()
        there.execute(statement_of(str(raised.value.hint)))
        reading = CdcReading(cdc_table(server, "guarded", {"id": BIGINT}, username="reader"))
        reading.reads(lambda: "slot_lag_bytes" in reading.counters)
        reading.close()


def test_tables_and_columns_that_cannot_be_read() -> None:
    with psycopg.connect(logical_server().url, autocommit=True) as there:
        there.execute("CREATE TABLE parts (id bigint PRIMARY KEY, name text) PARTITION BY RANGE (id)")
        there.execute("CREATE VIEW seen AS SELECT 1::bigint AS id, 'x'::text AS name")
        there.execute("CREATE UNLOGGED TABLE volatile_rows (id bigint PRIMARY KEY, name text)")
        for name in ("parts", "seen", "volatile_rows"):
            refused("DAT-5407", name)
        there.execute("CREATE TABLE plain_one (id bigint PRIMARY KEY, name text, f real UNIQUE NOT NULL)")
        there.execute("ALTER TABLE plain_one REPLICA IDENTITY FULL")
        assert "name" in refused("DAT-4703", "plain_one", columns={"id": BIGINT, "nam": STRING})
        refused("DAT-4706", "plain_one", columns={"id": INT})
        assert "PRIMARY KEY (f) or (id)" in refused("DAT-5406", "plain_one", key=("name",)).replace(
            "(id) or (f)", "(f) or (id)"
        )
        refused("DAT-5406", "plain_one", columns={"f": STRING}, key=("f",))


def test_a_table_of_upserts_needs_its_key_alone() -> None:
    with psycopg.connect(logical_server().url, autocommit=True) as there:
        there.execute("CREATE TABLE keyed (id bigint PRIMARY KEY, name text UNIQUE NOT NULL)")
        upserts = {"changelog_mode": "upsert"}
        assert "'changelog-mode' = 'upsert'" in refused("DAT-5405", "keyed")
        checked("keyed", **upserts)
        # changes have the identity's key: it must be the declared one
        refused("DAT-5405", "keyed", key=("name",), **upserts)
        there.execute("ALTER TABLE keyed REPLICA IDENTITY USING INDEX keyed_name_key")
        checked("keyed", key=("name",), **upserts)
        there.execute(statement_of(refused("DAT-5405", "keyed", **upserts)))
        checked("keyed", **upserts)
        there.execute("ALTER TABLE keyed REPLICA IDENTITY NOTHING")
        refused("DAT-5405", "keyed", **upserts)


def test_generated_columns_are_computed_here_unless_they_are_published() -> None:
    with psycopg.connect(logical_server().url, autocommit=True) as there:
        there.execute(
            "CREATE TABLE made_up (id bigint PRIMARY KEY, s bigint GENERATED ALWAYS AS (id * 2) STORED, v "
            "bigint GENERATED ALWAYS AS (id + 1) VIRTUAL)"
        )
        there.execute("ALTER TABLE made_up REPLICA IDENTITY FULL")
        assert refused("DAT-5419", "made_up", columns={"id": BIGINT, "s": BIGINT}).endswith("`s` AS (id * 2)")
        checked("made_up", columns={"id": BIGINT})
        there.execute("ALTER PUBLICATION penstock_slot_made_up SET (publish_generated_columns = stored)")
        checked("made_up", columns={"id": BIGINT, "s": BIGINT})
        refused("DAT-5419", "made_up", columns={"id": BIGINT, "v": BIGINT})


def test_a_column_that_is_gone_has_a_cure_here() -> None:
    with psycopg.connect(logical_server().url, autocommit=True) as there:
        there.execute("CREATE TABLE lessened (id bigint PRIMARY KEY)")
        there.execute("ALTER TABLE lessened REPLICA IDENTITY FULL")
        assert "ALTER TABLE `lessened` DROP" in refused(
            "DAT-4703", "lessened", columns={"id": BIGINT, "z": STRING}
        )


def test_a_key_is_sorted_by_its_bytes() -> None:
    with psycopg.connect(logical_server().url, autocommit=True) as there:
        there.execute("CREATE TABLE sorted_by (u uuid, t text, n numeric, i int, PRIMARY KEY (u, t, n, i))")
        there.execute("ALTER TABLE sorted_by REPLICA IDENTITY FULL")
    columns = {"u": STRING, "t": STRING, "n": STRING, "i": INT}
    assert checked("sorted_by", columns=columns, key=("u", "t", "n", "i")).order == (
        '"u"',
        '"t" COLLATE "C"',
        '"n"::text COLLATE "C"',
        '"i"',
    )
