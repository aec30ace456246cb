"""Replication slots: created, compared with the position of a job, and the snapshot of a table at a known
position of the log.
"""

from __future__ import annotations

import json
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.connectors.database.database import quoted
from penstock.engine.connectors.postgres_cdc.link import PostgresLink


def position_of(text: str) -> int:
    """Return the number of a position in the log, such as 0/16B3748."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def text_of(position: int) -> str:
    """Return a position as the server writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def drop_statement(slot: str) -> str:
    """Return the statement that drops a slot."""
    return f"SELECT pg_drop_replication_slot('{slot}')"


def slot_facts(link: PostgresLink, slot: str) -> dict[str, Any] | None:
    """Return the columns of pg_replication_slots for a slot; ``None`` when it does not exist."""
    found = link.ask("SELECT to_jsonb(s)::text FROM pg_replication_slots s WHERE slot_name = $1", [slot])
    return json.loads(str(found[0][0])) if found else None


def check_slot(facts: dict[str, Any] | None, slot: str, database: str, position: int | None) -> None:
    """Refuse a slot from which the changes after ``position`` cannot be read; ``None``: nothing was read yet.

    DAT-5409 for one of another plugin or database, DAT-5410 when it is gone or invalid. DAT-5411 when it has
    been advanced, DAT-5412 (to be tried again) when another connection uses it.
    """
    if facts is None:
        if position is not None:
            raise _unusable("DAT-5410", f"replication slot {slot} no longer exists", slot, exists=False)
        return
    if facts["plugin"] != "pgoutput" or facts["database"] != database:
        raise PenstockError(
            "DAT-5409",
            f"replication slot {slot} is of plugin {facts['plugin']} and database {facts['database']}",
            hint="choose another 'slot.name'; the slot is created when it does not exist",
            kind=Kind.EXTERNAL,
        )
    if facts["wal_status"] == "lost" or facts.get("invalidation_reason"):
        reason = facts.get("invalidation_reason") or "the server no longer has the log it needs"
        raise _unusable("DAT-5410", f"replication slot {slot} is invalid: {reason}", slot, exists=True)
    confirmed = position_of(facts["confirmed_flush_lsn"] or "0/0")
    if position is not None and confirmed > position:
        message = (
            f"replication slot {slot} is at {text_of(confirmed)}, after the job's position "
            f"{text_of(position)}: changes are lost"
        )
        raise _unusable("DAT-5411", message, slot, exists=True)
    if facts["active"]:
        raise PenstockError(
            "DAT-5412",
            f"replication slot {slot} is in use by server process {facts['active_pid']}",
            hint="each job needs a slot of its own: choose another 'slot.name', or stop the other job",
            kind=Kind.EXTERNAL,
            retriable=True,
            sqlstate="55006",
        )


def _unusable(code: str, message: str, slot: str, *, exists: bool) -> PenstockError:
    drop = f"run there: {drop_statement(slot)}; then " if exists else ""
    hint = f"{drop}start the job anew without its state: it reads the table again"
    return PenstockError(code, message, hint=hint, kind=Kind.EXTERNAL, sqlstate="55000")


def create_slot(link: PostgresLink, slot: str) -> None:
    """Create a slot that stays. It waits for the transactions that run now."""
    link.ask(f"CREATE_REPLICATION_SLOT {quoted(slot)} LOGICAL pgoutput NOEXPORT_SNAPSHOT")


def create_snapshot(link: PostgresLink, slot: str) -> tuple[int, str]:
    """Create a slot that ends with the connection; return its position and the name of the snapshot of that
    state. The snapshot can be imported until the connection's next statement.
    """
    row = link.ask(f"CREATE_REPLICATION_SLOT {quoted(slot)} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT")[0]
    return position_of(str(row[1])), str(row[2])


def start_stream(link: PostgresLink, slot: str, publication: str, position: int) -> None:
    """Begin to stream the changes from a position on."""
    # a list of identifiers within a literal
    names = quoted(publication).replace("'", "''")
    link.start_copy(
        f"START_REPLICATION SLOT {quoted(slot)} LOGICAL {text_of(position)} "
        f"(proto_version '1', publication_names '{names}')"
    )
