"""Error codes of the PostgreSQL wire: what its clients send that this server does not do."""

from __future__ import annotations

POSTGRES_WIRE: dict[str, tuple[str, str]] = {
    "CLI-6220": (
        "Bytes that are no message of PostgreSQL's protocol, or a message that is too long.",
        "Connect with a client of PostgreSQL, protocol 3.0.",
    ),
    "CLI-6221": ("The server takes encrypted connections only.", "Connect with sslmode=require."),
    "CLI-6222": ("A message of SCRAM cannot be read.", "Use a driver that speaks SCRAM-SHA-256."),
    "CLI-6223": (
        "The value of a parameter is none of its type.",
        "Send it in PostgreSQL's text format, or declare its type.",
    ),
    "CLI-6224": (
        "A SELECT that never ends has rows that are updated later.",
        "Write SUBSCRIBE before it, or read a materialized view.",
    ),
    "CLI-6225": ("The formats of Bind do not fit the columns.", "Send no format, one, or one for each."),
    "CLI-6226": ("A parameter of SET or SHOW does not exist.", "SHOW ALL lists them."),
    "CLI-6227": ("A parameter takes no such value here.", "Leave it as it is, or write a value of the hint."),
    "CLI-6228": ("COPY is not written as it must be.", "Write COPY (query) TO STDOUT or COPY t FROM STDIN."),
    "CLI-6229": (
        "A cursor does not exist, exists already, or is asked for what it cannot do.",
        "DECLARE name CURSOR FOR query, then FETCH n FROM name.",
    ),
    "CLI-6260": (
        "A prepared statement or portal does not exist, exists already, or is one too many.",
        "Close those that are not used, or use the unnamed one.",
    ),
    "CLI-6261": ("A statement was cancelled, or took too long.", "Run it again, or raise statement_timeout."),
    "CLI-6262": ("A statement of a transaction block has failed before.", "Send ROLLBACK."),
    "CLI-6263": ("COPY or DECLARE names a statement without rows.", "Write SELECT or SUBSCRIBE there."),
    "CLI-6264": ("The client gave up its COPY FROM STDIN.", "Send the rows again."),
    "CLI-6265": ("The rows of COPY FROM STDIN cannot be read.", "Correct them, or name their format."),
    "CLI-6267": (
        "A query of PostgreSQL's system catalog cannot be answered.",
        "SHOW TABLES and DESCRIBE tell what there is.",
    ),
    "CLI-6268": (
        "A row is longer than PostgreSQL's protocol can say: two gigabytes.",
        "Select fewer columns, or a part of the long value.",
    ),
    "CLI-6266": ("The server has too many connections, or a client took too long.", "Connect again later."),
}
