"""Causes and cures of errors: Delta and Iceberg tables."""

from __future__ import annotations

LAKEHOUSE: dict[str, tuple[str, str]] = {
    "DAT-5300": ("A connector of lakehouse tables needs its library.", "pip install what the hint names."),
    "DAT-5301": (
        "There is no lakehouse table at the path, or of the name.",
        "Correct the path; an INSERT into a Delta table creates it.",
    ),
    "DAT-5302": (
        "The version or time to read is not there, or was cleaned up.",
        "Give a version that is still kept.",
    ),
    "DAT-5303": (
        "The store of a lakehouse table cannot be reached.",
        "Check the path, the storage options and that the store is up.",
    ),
    "DAT-5304": (
        "The library of a lakehouse table refuses what is asked.",
        "Read its words in the detail of the message.",
    ),
    "DAT-5305": (
        "A lakehouse table has a feature that penstock cannot read or write.",
        "Take the feature out as the hint says.",
    ),
    "DAT-5306": (
        "The declared columns are not those of the lakehouse table.",
        "Declare them as the table has them, or let the sink add them.",
    ),
    "DAT-5307": (
        "PARTITIONED BY is not what the lakehouse table is partitioned by.",
        "Leave PARTITIONED BY out, or name the columns of the table.",
    ),
    "DAT-5308": (
        "A version changes or removes rows, where only added rows are read.",
        "Read its change data feed, or begin after that version.",
    ),
    "DAT-5309": (
        "A version that a reader has not read was cleaned from the log.",
        "Begin without state; keep the log longer than a reader may be behind.",
    ),
    "DAT-5310": (
        "A data file of a lakehouse table is gone.",
        "Read a newer version; keep files longer than a reader may be behind.",
    ),
    "DAT-5311": (
        "Another table is where a lakehouse table was read.",
        "Begin without the job's state.",
    ),
    "DAT-5313": (
        "Other writers of a lakehouse table got ahead of each commit.",
        "It is tried again; commit less often, or from fewer jobs.",
    ),
    "DAT-5314": (
        "A row breaks a constraint of a lakehouse table: NOT NULL, CHECK, a generated column.",
        "Filter or mend such rows in the query, or change the table's constraint.",
    ),
}
