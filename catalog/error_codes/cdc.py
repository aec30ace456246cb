"""Causes and cures of errors: changes of PostgreSQL's tables."""

from __future__ import annotations

CDC: dict[str, tuple[str, str]] = {
    "DAT-5401": (
        "The PostgreSQL server of a postgres-cdc table cannot be reached, or refuses the user.",
        "Read the detail; correct 'hostname', 'port', 'username', 'password' or 'database-name'.",
    ),
    "DAT-5402": (
        "The connection that sends a table's changes was lost, or the server refused a statement.",
        "Lost connections are opened again by themselves. Read the detail for a refusal.",
    ),
    "DAT-5403": (
        "The server's wal_level is not logical.",
        "Run ALTER SYSTEM SET wal_level = logical, and restart the server.",
    ),
    "DAT-5404": (
        "The user may not read the table, or may not replicate.",
        "Run the GRANT or ALTER ROLE of the hint.",
    ),
    "DAT-5405": (
        "The server's log has only the key of a replaced row, so the row cannot be retracted.",
        "Run ALTER TABLE .. REPLICA IDENTITY FULL there.",
    ),
    "DAT-5406": (
        "The declared PRIMARY KEY is no unique key of NOT NULL columns there, or of a type without an order.",
        "Declare the key of the hint, or add one to the table there.",
    ),
    "DAT-5407": (
        "The table is partitioned, a view, or not permanent.",
        "Create a table for each partition, or for the table behind the view.",
    ),
    "DAT-5408": (
        "The publication is missing and cannot be created, or leaves out changes, rows or columns.",
        "Let the table's owner run the statement of the hint.",
    ),
    "DAT-5409": (
        "The replication slot is of another output plugin or another database.",
        "Choose another 'slot.name'.",
    ),
    "DAT-5410": (
        "The replication slot is gone, or the server has invalidated it.",
        "Drop it there, and start the job without its state. A greater max_slot_wal_keep_size prevents it.",
    ),
    "DAT-5411": (
        "The replication slot was advanced beyond the position of the job, for example by another job.",
        "Start the job without its state, and give each job a slot of its own.",
    ),
    "DAT-5412": (
        "Another connection uses the replication slot.",
        "Stop the other job, or choose another 'slot.name'.",
    ),
    "DAT-5413": (
        "A declared column was dropped or renamed, or has another type now.",
        "Create the table here anew as it is there, and start the job without its state.",
    ),
    "DAT-5414": (
        "With 'scan.startup.mode' = 'latest-offset' a row was updated or deleted that was never read.",
        "Use 'initial'.",
    ),
    "DAT-5415": (
        "Values of one column that must be decoded together have more than 2 GiB.",
        "Leave the column out of the table.",
    ),
    "DAT-5416": (
        "The table was truncated: the log does not say which rows it had.",
        "Drop the slot, and start the job without its state. DELETE can be followed, TRUNCATE cannot.",
    ),
    "DAT-5417": (
        "The table was dropped or renamed while its changes were read.",
        "Start the job without its state, or rename the table back.",
    ),
}
