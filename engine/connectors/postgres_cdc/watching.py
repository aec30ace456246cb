"""Looks at a slot and its table once an interval. It reports how much of its log the server keeps for it,
and whether the table is still the one whose changes are read, and all of them.
"""

from __future__ import annotations

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.connectors.database.database import quoted
from penstock.engine.connectors.postgres_cdc.layouts import ReplicatedTable
from penstock.engine.connectors.postgres_cdc.link import PostgresLink


@dataclass(frozen=True)
class SlotFigures:
    """``lag_bytes``: the bytes of the log from the slot's position to the server's."""

    lag_bytes: int


def watch(link: PostgresLink, slot: str, relation: ReplicatedTable, publication: str) -> SlotFigures:
    """Ask the server. DAT-5417 when the table was dropped, or another has its name; DAT-5408 when its changes
    are no longer published.
    """
    text = (
        "SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE "
        "pg_current_wal_lsn() END, confirmed_flush_lsn)::bigint::text, to_regclass($2)::oid::text, "
        "EXISTS (SELECT FROM pg_publication_tables t WHERE t.pubname = $3 AND "
        "quote_ident(t.schemaname) || '.' || quote_ident(t.tablename) = $2)::text FROM pg_replication_slots "
        "WHERE slot_name = $1"
    )
    found = link.ask(text, [slot, relation.name, publication])
    if found and found[0][1] != str(relation.oid):
        raise PenstockError(
            "DAT-5417",
            f"table {relation.name} was dropped or renamed while its changes were read",
            hint="start the job anew without its state: it reads the table that has the name now",
            kind=Kind.EXTERNAL,
            sqlstate="42P01",
        )
    if found and found[0][2] != "true":
        raise PenstockError(
            "DAT-5408",
            f"publication {publication} no longer has table {relation.name}: changes are missing",
            hint=f"run there: ALTER PUBLICATION {quoted(publication)} ADD TABLE {relation.name}; then start "
            "the job anew without its state",
            kind=Kind.EXTERNAL,
            sqlstate="55000",
        )
    return SlotFigures(int(str(found[0][0])) if found and found[0][0] is not None else 0)
