"""Opens the connections of a reader at a position: a copy of the table in one state, or the stream of
changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import String
from penstock.engine.connectors.database.database import quoted
from penstock.engine.connectors.database.postgres import NULL_MARK
from penstock.engine.connectors.postgres_cdc.key_ranges import KeyRanges
from penstock.engine.connectors.postgres_cdc.link import Address, PostgresLink
from penstock.engine.connectors.postgres_cdc.server_checks import TableFacts, checked_server, publication_of
from penstock.engine.connectors.postgres_cdc.slots import (
    check_slot,
    create_slot,
    create_snapshot,
    slot_facts,
    start_stream,
)


@dataclass
class Progress:
    """Where a reader is. ``ranges``: the states in which the table was read; ``reached``: the last key that
    was emitted while it is read. ``position``: all commits before it are emitted; 0: nothing was begun.
    ``partial``: the commit of a transaction of which so many changes are emitted too. ``columns``: those that
    the table had there, and those that were read, once it was opened.
    """

    ranges: KeyRanges
    snapshot: bool
    reached: list[str] | None = None
    position: int = 0
    partial: list[int] | None = None
    columns: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class OpenConnections:
    """Connections at work: ``sql`` sends the rows of the table (``copying``) or waits for questions;
    ``stream`` sends changes unless ``copying``.
    """

    sql: PostgresLink
    stream: PostgresLink
    facts: TableFacts
    progress: Progress
    slot: str
    copying: bool

    def close(self) -> None:
        """Close both."""
        self.sql.close()
        self.stream.close()


def address_of(table: CatalogTable) -> Address:
    """Return where a table's server is."""
    password = option(table, "password")
    return Address(
        str(option(table, "hostname")),
        int(str(option(table, "port"))),
        str(option(table, "database-name")),
        str(option(table, "username")),
        None if password is None else str(password),
    )


def open_at(
    table: CatalogTable, columns: tuple[int, ...], progress: Progress, *, resumes: bool
) -> OpenConnections:
    """Open a reader's connections. It may wait for transactions of the server.

    ``resumes``: the slot stays when the connection ends. Else it is one of the connection's own.
    """
    made: list[PostgresLink] = []
    try:
        sql = PostgresLink(address_of(table))
        made.append(sql)
        facts = checked_server(sql, table, columns)
        stream = _replication_link(table)
        made.append(stream)
        own = f"penstock_{stream.process}"
        slot = str(option(table, "slot.name")) if resumes else own
        if resumes:
            _need_slot(sql, stream, slot, table, progress)
        if progress.snapshot or not progress.position:
            _begin(sql, stream, own if resumes else slot, facts, progress)
            if resumes:
                # the copy has its snapshot: what was made for it would keep the server's log
                stream.ask(f"DROP_REPLICATION_SLOT {quoted(own)}")
        copying = progress.snapshot
        if not copying:
            start_stream(stream, slot, publication_of(table), progress.position)
        return OpenConnections(sql, stream, facts, progress, slot, copying)
    except BaseException:
        for link in made:
            link.close()
        raise


def stream_after_copy(table: CatalogTable, opened: OpenConnections) -> OpenConnections:
    """Begin to stream on connections whose copy has ended."""
    opened.sql.ask("COMMIT")
    start_stream(opened.stream, opened.slot, publication_of(table), opened.progress.position)
    opened.copying = False
    return opened


def _replication_link(table: CatalogTable) -> PostgresLink:
    try:
        return PostgresLink(address_of(table), replication=True)
    except PenstockError as error:
        # 15: must be .. replication role to start walsender; 16: permission denied to start WAL sender
        if re.search(r"(?i)start wal ?sender", error.detail or "") is None:
            raise
        user = option(table, "username")
        raise PenstockError(
            "DAT-5404",
            f"user {user} may not read changes",
            detail=error.detail,
            hint=f"run there: ALTER ROLE {user} REPLICATION",
            kind=Kind.EXTERNAL,
            sqlstate="42501",
        ) from error


def _need_slot(
    sql: PostgresLink, stream: PostgresLink, slot: str, table: CatalogTable, progress: Progress
) -> None:
    """Check the slot, and create it when nothing was read yet."""
    facts = slot_facts(sql, slot)
    needed = progress.position or (progress.ranges.first if progress.ranges.items else None)
    check_slot(facts, slot, str(option(table, "database-name")), needed)
    if facts is None:
        create_slot(stream, slot)


def _begin(sql: PostgresLink, stream: PostgresLink, slot: str, facts: TableFacts, progress: Progress) -> None:
    """Take a snapshot, and begin to copy the rows of keys that were not reached yet."""
    position, snapshot = create_snapshot(stream, slot)
    progress.ranges.resume(progress.reached, position)
    progress.position = progress.ranges.first
    if not progress.snapshot:
        return
    sql.ask("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    sql.ask(f"SET TRANSACTION SNAPSHOT {sql.literal(snapshot)}")
    texts = [quoted(one.name) for one in facts.fields if isinstance(one.type, String)]
    order = ", ".join(facts.order)
    after = ""
    if progress.reached is not None:
        after = f" WHERE ({order}) > ({', '.join(map(sql.literal, progress.reached))})"
    names = ", ".join(quoted(one.name) for one in facts.fields)
    force = f", FORCE_QUOTE ({', '.join(texts)})" if texts else ""
    sql.start_copy(
        f"COPY (SELECT {names} FROM ONLY {facts.relation.name}{after} ORDER BY {order}) "
        f"TO STDOUT (FORMAT csv, NULL '{NULL_MARK}', ENCODING 'UTF8'{force})"
    )
