"""All that is known of one table or view, beside its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.catalog.connectors.filesystem import STANDARD_INPUT, STANDARD_OUTPUT
from penstock.catalog.connectors.registry import boundedness, redacted, takes_changes
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable, MaterializedView, View
from penstock.client.results.result import Result, text_rows

if TYPE_CHECKING:
    from penstock.client.execution.session_state import SessionState


def relation_facts(state: SessionState, relation: CatalogTable | View) -> Result:
    """Return one row per fact: connector, options, watermark, keys, size where it is known."""
    facts = _view_facts(relation) if isinstance(relation, View) else _table_facts(state, relation)
    return text_rows(["fact", "value"], [(name, value) for name, value in facts if value])


def _view_facts(view: View) -> list[tuple[str, str | None]]:
    return [("view", view.name), ("temporary", "yes" if view.temporary else "no"), ("query", view.query)]


def _table_facts(state: SessionState, table: CatalogTable) -> list[tuple[str, str | None]]:
    watermark = table.watermark
    facts: list[tuple[str, str | None]] = [
        ("table", table.name),
        ("comment", table.comment),
        ("connector", table.connector),
        ("rows", f"{boundedness(table)}, {'takes changes' if takes_changes(table) else 'append only'}"),
        ("temporary", "yes" if table.temporary else "no"),
        ("watermark", None if watermark is None else f"{watermark.column}: {watermark.text}"),
        ("primary key", ", ".join(table.primary_key)),
        ("partitioned by", ", ".join(table.partitioned_by)),
    ]
    if isinstance(table, MaterializedView):
        job, contents = state.views.job(table.name), state.views.tables.find(table.name)
        facts += [
            ("query", table.query),
            ("job", None if job is None else f"{job.job_id}, {str(job.state).lower()}"),
            ("size", None if contents is None else _rows_text(contents.state()[1])),
        ]
    # Secrets among the options stay secret.
    facts += [
        (f"option {key}", value) for key, value in redacted(table.options).items() if key != "connector"
    ]
    if table.connector == "filesystem":
        facts.append(("size", _files_text(table)))
    return facts


def _rows_text(rows: Sequence[pa.RecordBatch]) -> str:
    count = sum(batch.num_rows for batch in rows)
    return f"{count:,} row{'' if count == 1 else 's'}"


def _files_text(table: CatalogTable) -> str | None:
    """Return how many files a table has, and their bytes."""
    path = table.options.get("path", "")
    if path in (*STANDARD_INPUT, *STANDARD_OUTPUT):
        return None
    # Arrow's filesystems: not before a table of files is looked at.
    from penstock.engine.connectors.filesystem.listing import FileListing

    try:
        files = FileListing(path, table.options.get("format"), table.options).files(missing_ok=True)
    # A path that cannot be read now is no error of a description.
    except PenstockError as error:
        return f"not known: {error.message}"
    size = sum(file.size for file in files)
    return f"{len(files):,} file{'' if len(files) == 1 else 's'}, {size:,} bytes"
