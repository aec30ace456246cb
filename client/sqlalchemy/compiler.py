"""Compilers: SQLAlchemy's statements, declarations and types as texts of our SQL."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from sqlalchemy import exc, schema, types, util
from sqlalchemy.sql import compiler
from sqlalchemy.sql.elements import BindParameter
from sqlalchemy.sql.type_api import TypeDecorator, TypeEngine

from penstock.client.sqlalchemy.column_types import MAP, ROW, Nested, quoted_name
from penstock.planner.parser.keywords import RESERVED

# DECIMAL alone has no digits after the point: these many are what Spark computes with
_DEFAULT_DECIMAL = "DECIMAL(38, 18)"
# the bits of a FLOAT; SQLAlchemy's Float is Python's, which is a DOUBLE
_FLOAT_PRECISION = 24
# as SQLAlchemy compares them
_RESERVED_WORDS = {word.lower() for word in RESERVED}


class PenstockIdentifierPreparer(compiler.IdentifierPreparer):
    """Quotes names with backticks. A schema is a database, or ``catalog.database``."""

    reserved_words = _RESERVED_WORDS

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`")

    def quote_schema(self, schema: str, force: Any = None) -> str:
        """Return the quoted parts of a path."""
        return ".".join(self.quote(part) for part in schema.split("."))


class PenstockCompiler(compiler.SQLCompiler):
    """Compiles queries and inserts."""

    def visit_bindparam(self, bindparam: BindParameter[Any], *args: Any, **kw: Any) -> str:
        """Compile a parameter; one of a nested type is JSON, parsed by ``from_json``."""
        text = super().visit_bindparam(bindparam, *args, **kw)
        kind = bindparam.type.dialect_impl(self.dialect)
        while isinstance(kind, TypeDecorator):
            kind = kind.impl_instance
        # each value of IN (..) is compiled when it is known
        if not isinstance(kind, Nested) or bindparam.expanding:
            return text
        named = self.dialect.type_compiler_instance.process(kind).replace("'", "''")
        return f"from_json({text}, '{named}')"

    def render_literal_value(self, value: Any, type_: TypeEngine[Any]) -> str:
        """Write a value as a literal of its own type, not as text."""
        # the type's own processor first converts the values of a TypeDecorator
        if isinstance(type_, TypeDecorator):
            return super().render_literal_value(value, type_)
        match value:
            case datetime.datetime(tzinfo=None):
                return f"TIMESTAMP '{value.isoformat(' ')}'"
            case datetime.datetime():
                return f"CAST('{value.isoformat(' ')}' AS TIMESTAMP_LTZ(6))"
            case datetime.date():
                return f"DATE '{value.isoformat()}'"
            case datetime.time():
                return f"TIME '{value.isoformat()}'"
            case bytes():
                return f"X'{value.hex()}'"
        return super().render_literal_value(value, type_)

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """Compile LIMIT and OFFSET, each alone or both."""
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **kw)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        """Raise CompileError: no row is ever locked."""
        raise exc.CompileError("penstock has no row locks: leave out with_for_update()")

    def visit_getitem_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile the element of an array, the value of a map or the field of a row."""
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        return f"({left}).{right}" if isinstance(binary.left.type, ROW) else f"{left}[{right}]"

    def visit_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile ILIKE."""
        return self._ilike("ILIKE", binary, **kw)

    def visit_not_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile NOT ILIKE."""
        return self._ilike("NOT ILIKE", binary, **kw)

    def _ilike(self, word: str, binary: Any, **kw: Any) -> str:
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        escape = binary.modifiers.get("escape")
        text = f"{left} {word} {right}"
        if escape is None:
            return text
        return f"{text} ESCAPE {self.render_literal_value(escape, types.STRINGTYPE)}"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile a match with a regular expression."""
        return self._regexp("RLIKE", binary, **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile the negation of a match."""
        return self._regexp("NOT RLIKE", binary, **kw)

    def _regexp(self, word: str, binary: Any, **kw: Any) -> str:
        if binary.modifiers["flags"] is not None:
            raise exc.CompileError("RLIKE has no flags: write them into the pattern, such as (?i)")
        return f"{self.process(binary.left, **kw)} {word} {self.process(binary.right, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Compile a replacement."""
        if binary.modifiers["flags"] is not None:
            raise exc.CompileError("regexp_replace has no flags: write them into the pattern, such as (?i)")
        return f"regexp_replace({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"


class PenstockDDLCompiler(compiler.DDLCompiler):
    """Compiles CREATE TABLE with its WATERMARK, PARTITIONED BY and WITH.

    ``new_folder`` is that of a table in the engine's directory, which must exist before it is read.
    """

    new_folder: str | None = None

    def create_table_constraints(
        self, table: schema.Table, _include_foreign_key_constraints: Any = None, **kw: Any
    ) -> str:
        """Compile the primary key and the watermark, which are declared beside the columns."""
        constraints = super().create_table_constraints(table, _include_foreign_key_constraints, **kw)
        watermark = table.dialect_options["penstock"]["watermark"]
        if watermark is None:
            return constraints
        return ", \n\t".join(filter(None, [constraints, f"WATERMARK FOR {watermark}"]))

    def get_column_specification(self, column: schema.Column[Any], **kw: Any) -> str:
        """Compile a column; a computed one has no type of its own."""
        if column.computed is not None:
            expression = self.sql_compiler.process(
                column.computed.sqltext, include_table=False, literal_binds=True
            )
            return f"{self.preparer.format_column(column)} AS {expression}"
        if column.server_default is not None and column.identity is None:
            raise exc.CompileError("columns have no server_default: use default=, which the client fills in")
        return super().get_column_specification(column, **kw)

    def post_create_table(self, table: schema.Table) -> str:
        """Compile PARTITIONED BY and WITH."""
        options = table.dialect_options["penstock"]
        text = ""
        if options["partitioned_by"]:
            names = options["partitioned_by"]
            columns = [names] if isinstance(names, str) else names
            text += f"\nPARTITIONED BY ({', '.join(map(self.preparer.quote, columns))})"
        pairs = options["with"] or self._files_of(table)
        written = ",\n\t".join(f"{_text(key)} = {_text(str(value))}" for key, value in pairs.items())
        return f"{text}\nWITH (\n\t{written}\n)"

    def _files_of(self, table: schema.Table) -> dict[str, str]:
        """Return the options of a table that names no connector: Parquet files in the engine's directory."""
        directory = getattr(self.dialect, "table_directory", None)
        if not directory:
            raise exc.CompileError(
                f"table {table.name} names no connector: pass penstock_with={{'connector': ..}} to Table, or"
                " open the engine with penstock:///?table_directory=DIR, where tables become Parquet files"
            )
        # a new folder for each CREATE: DROP TABLE keeps the files, which are no rows of the next table
        self.new_folder = f"{directory}/{table.fullname}-{uuid.uuid4().hex[:8]}"
        return {"connector": "filesystem", "path": self.new_folder, "format": "parquet"}

    def visit_primary_key_constraint(self, constraint: schema.PrimaryKeyConstraint, **kw: Any) -> str:
        """Compile a primary key, which is a statement about the rows that nothing checks."""
        if not len(constraint):
            return ""
        names = ", ".join(self.preparer.quote(column.name) for column in constraint)
        return f"PRIMARY KEY ({names}) NOT ENFORCED"

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Warn that nothing checks a foreign key, and leave it out: ORM models need them for their joins."""
        return _left_out("FOREIGN KEY", constraint.parent)

    def visit_unique_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Warn that nothing checks uniqueness, and leave the constraint out."""
        return _left_out("UNIQUE", constraint.parent)

    def visit_check_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Warn that nothing checks a condition, and leave the constraint out."""
        return _left_out("CHECK", constraint.parent)

    def visit_column_check_constraint(self, constraint: Any, **kw: Any) -> str:
        """Warn for the condition of a column, and leave it out."""
        return _left_out("CHECK", constraint.parent) or ""

    def visit_create_index(self, create: Any, *args: Any, **kw: Any) -> str:
        """Compile an index to no statement, as tables are scanned. Warn for a unique one."""
        if create.element.unique:
            _left_out("UNIQUE", create.element.table)
        return ""

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        """Compile to no statement."""
        return ""


def _left_out(kind: str, owner: schema.Column[Any] | schema.Table) -> str | None:
    """Warn about a constraint of a column or table, and return the text in its place."""
    table = owner.table if isinstance(owner, schema.Column) else owner
    util.warn(f"penstock does not enforce {kind} constraints: the one of table {table} is left out")
    # SQLAlchemy joins all texts of a column, and those texts of a table that are not None
    return None if table is owner else ""


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


class PenstockTypeCompiler(compiler.GenericTypeCompiler):
    """Compiles types."""

    def visit_TINYINT(self, type_: Any, **kw: Any) -> str:
        """Compile TINYINT."""
        return "TINYINT"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        """Compile FLOAT, of 32 bits only where the precision says so."""
        precision = type_.precision
        return "FLOAT" if precision is not None and precision <= _FLOAT_PRECISION else "DOUBLE"

    def visit_REAL(self, type_: Any, **kw: Any) -> str:
        """Compile REAL."""
        return "FLOAT"

    def visit_DOUBLE_PRECISION(self, type_: Any, **kw: Any) -> str:
        """Compile DOUBLE PRECISION."""
        return "DOUBLE"

    def visit_DECIMAL(self, type_: Any, **kw: Any) -> str:
        """Compile DECIMAL."""
        if type_.precision is None:
            return _DEFAULT_DECIMAL
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        """Compile NUMERIC."""
        return self.visit_DECIMAL(type_, **kw)

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:
        """Compile a text; no length is enforced."""
        return "STRING"

    visit_CHAR = visit_NVARCHAR = visit_NCHAR = visit_TEXT = visit_CLOB = visit_NCLOB = visit_VARCHAR
    # values are text: SQLAlchemy writes and reads them
    visit_JSON = visit_UUID = visit_VARCHAR

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:
        """Compile bytes."""
        return "BYTES"

    visit_BINARY = visit_VARBINARY = visit_BLOB

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        """Compile a timestamp; with a time zone it is an instant."""
        name = "TIMESTAMP_LTZ" if type_.timezone else "TIMESTAMP"
        return f"{name}({getattr(type_, 'precision', 6)})"

    visit_DATETIME = visit_TIMESTAMP

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        """Compile TIME."""
        return "TIME"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        """Compile a duration."""
        return "INTERVAL DAY TO SECOND"

    def visit_YEAR_MONTH(self, type_: Any, **kw: Any) -> str:
        """Compile an interval of months."""
        return "INTERVAL YEAR TO MONTH"

    def visit_ARRAY(self, type_: types.ARRAY[Any], **kw: Any) -> str:
        """Compile an array, one in another for each dimension."""
        depth = type_.dimensions or 1
        return "ARRAY<" * depth + self.process(type_.item_type, **kw) + ">" * depth

    def visit_MAP(self, type_: MAP, **kw: Any) -> str:
        """Compile a map."""
        return f"MAP<{self.process(type_.key_type, **kw)}, {self.process(type_.value_type, **kw)}>"

    def visit_ROW(self, type_: ROW, **kw: Any) -> str:
        """Compile a row."""
        fields = (f"{quoted_name(name)} {self.process(kind, **kw)}" for name, kind in type_.fields)
        return f"ROW<{', '.join(fields)}>"
