"""Tables and views as the statements that make them again."""

from __future__ import annotations

from penstock.catalog.connectors.registry import redacted
from penstock.catalog.python_functions import FunctionEntry
from penstock.catalog.tables import CatalogTable, MaterializedView, View
from penstock.catalog.types import Array, DataType, Map, Row


def create_statement(relation: CatalogTable | View, *, redact: bool = True) -> str:
    """Return CREATE TABLE or CREATE VIEW for a relation; secrets among its options are ``******`` unless
    ``redact`` is off (for the store).
    """
    return (
        _view_text(relation)
        # A MaterializedView is a CatalogTable too: it is asked for first.
        if isinstance(relation, View | MaterializedView)
        else _table_text(relation, redact)
    )


def function_statement(entry: FunctionEntry) -> str:
    """Return CREATE FUNCTION for a function that SQL declared."""
    assert entry.target is not None
    return f"CREATE FUNCTION {quoted_name(entry.name)} AS {quoted_text(entry.target)} LANGUAGE PYTHON"


def quoted_name(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quoted_path(name: str) -> str:
    """Return a relation's full name with each part in backticks."""
    return ".".join(map(quoted_name, name.split(".")))


def quoted_text(text: str) -> str:
    """Return a text in single quotes."""
    # A quote in a SQL text is written twice; there are no other escapes.
    return "'" + text.replace("'", "''") + "'"


def type_text(kind: DataType) -> str:
    """Return a type as the grammar reads it back, the names of ROW fields quoted."""
    match kind:
        case Array(element):
            return f"ARRAY<{type_text(element)}>"
        case Map(key, value):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
        # ROW<`order` INT>: a field may be called as a keyword is.
        case Row(fields):
            return (
                "ROW<" + ", ".join(f"{quoted_name(name)} {type_text(field)}" for name, field in fields) + ">"
            )
    return str(kind)


def _view_text(view: View | MaterializedView) -> str:
    # The names that the view declared; those of its query may differ.
    columns = ", ".join(quoted_name(name) for name in view.schema.names)
    kind = "MATERIALIZED " if isinstance(view, MaterializedView) else "TEMPORARY " if view.temporary else ""
    return f"CREATE {kind}VIEW {quoted_path(view.name)} ({columns}) AS\n{view.query}"


def _table_text(table: CatalogTable, redact: bool) -> str:
    # The clauses in the order of the grammar: columns, watermark, key; then comment, partitions, options.
    lines = [f"  {_column_text(table, name)}" for name in table.schema.names]
    if table.watermark is not None:
        lines.append(f"  WATERMARK FOR {quoted_name(table.watermark.column)} AS {table.watermark.text}")
    if table.primary_key:
        lines.append(f"  PRIMARY KEY ({_names(table.primary_key)}) NOT ENFORCED")
    # SHOW CREATE TABLE redacts; the catalog on disk needs the values.
    options = redacted(table.options) if redact else table.options
    columns = ",\n".join(lines)
    head = f"CREATE {'TEMPORARY ' if table.temporary else ''}TABLE {quoted_path(table.name)} (\n{columns}\n)"
    parts = [head]
    if table.comment is not None:
        parts.append(f"COMMENT {quoted_text(table.comment)}")
    if table.partitioned_by:
        parts.append(f"PARTITIONED BY ({_names(table.partitioned_by)})")
    pairs = ",\n".join(f"  {quoted_text(key)} = {quoted_text(value)}" for key, value in options.items())
    parts.append(f"WITH (\n{pairs}\n)")
    return "\n".join(parts)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(quoted_name(name) for name in names)


def _column_text(table: CatalogTable, name: str) -> str:
    # name AS expression: its text is what the user wrote.
    for computed in table.computed:
        if computed.name == name:
            return f"{quoted_name(name)} AS {computed.text}"
    index = table.source_schema.index_of(name)
    assert index is not None
    column = table.source_schema[index]
    text = f"{quoted_name(name)} {type_text(column.type)}{'' if column.nullable else ' NOT NULL'}"
    # name TYPE METADATA FROM 'key' VIRTUAL
    for metadata in table.metadata:
        if metadata.name == name:
            return f"{text} METADATA FROM {quoted_text(metadata.key)}{' VIRTUAL' if metadata.virtual else ''}"
    return text
