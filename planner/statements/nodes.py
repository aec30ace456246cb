"""Statement nodes: a closed set of frozen nodes. Names are not resolved yet; each part has its span in the
text.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Literal

from sqlglot import exp

from penstock.catalog.errors import Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import DataType
from penstock.planner.parser.syntax_nodes import NOWHERE, OptionEntry


@dataclass(frozen=True)
class Name:
    """An identifier as written, without quotes, and its span."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)
    quoted: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class FilePath(Name):
    """A path in single quotes, where a table's name may be."""


@dataclass(frozen=True)
class SqlExpression:
    """A scalar expression inside a statement: its text and its sqlglot tree. The tree's spans are those of
    the statement.
    """

    text: str
    tree: exp.Expr = field(compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class PhysicalColumnDef:
    """``name TYPE [NOT NULL] [COMMENT '..']``."""

    name: Name
    type: DataType
    nullable: bool = True


@dataclass(frozen=True)
class ComputedColumnDef:
    """``name AS expression``."""

    name: Name
    expression: SqlExpression


@dataclass(frozen=True)
class MetadataColumnDef:
    """``name TYPE METADATA [FROM 'key'] [VIRTUAL]``."""

    name: Name
    type: DataType
    key: str
    virtual: bool = False
    nullable: bool = True
    key_span: Span = field(default=NOWHERE, compare=False)


ColumnDef = PhysicalColumnDef | ComputedColumnDef | MetadataColumnDef


@dataclass(frozen=True)
class WatermarkDef:
    """``WATERMARK FOR column AS expression``."""

    column: Name
    expression: SqlExpression


@dataclass(frozen=True)
class Statement:
    """Base of all statements. ``span`` is the whole statement without its semicolon, relative to the
    statement's own text.
    """

    span: Span = field(default=NOWHERE, compare=False, kw_only=True)


@dataclass(frozen=True)
class Query(Statement):
    """SELECT, VALUES or WITH: the text and the sqlglot tree."""

    text: str
    tree: exp.Expr = field(compare=False, repr=False)


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE."""

    name: Name
    columns: tuple[ColumnDef, ...]
    options: tuple[OptionEntry, ...] = ()
    watermark: WatermarkDef | None = None
    primary_key: tuple[Name, ...] = ()
    partitioned_by: tuple[Name, ...] = ()
    comment: str | None = None
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True)
class CreateTableLike(Statement):
    """CREATE TABLE .. LIKE. ``table`` holds what is added or changed, ``excluding`` the parts that are not
    copied, in upper case.
    """

    table: CreateTable
    source: Name
    excluding: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CreateTableAs(Statement):
    """CREATE TABLE .. AS: a table with the columns of a query, and a job that fills it. ``table`` has no
    columns.
    """

    table: CreateTable
    query: Query


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE VIEW."""

    name: Name
    query: Query
    columns: tuple[Name, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True)
class AlterView(Statement):
    """ALTER VIEW: the new name of a view, or its new query."""

    name: Name
    change: Name | Query


@dataclass(frozen=True)
class DropTable(Statement):
    """DROP TABLE."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class DropView(Statement):
    """DROP VIEW."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class CreateMaterializedView(Statement):
    """CREATE MATERIALIZED VIEW: a table that a job keeps equal to a query."""

    name: Name
    query: Query
    columns: tuple[Name, ...] = ()
    if_not_exists: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class DropMaterializedView(Statement):
    """DROP MATERIALIZED VIEW: stops its job and deletes its rows."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class PartitionValue:
    """A column in ``PARTITION (..)`` of an INSERT; ``value`` is the text of its constant, None where the
    query has its values.
    """

    column: Name
    value: str | None = None


# what is done where several rows of an INSERT have one primary key
ConflictAction = Literal["error", "nothing", "deduplicate"]


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO, or INSERT OVERWRITE. No ``columns`` means all physical columns in declared order, without
    those that have a constant in ``partition``. ``options`` are those of the hint behind the table.
    """

    target: Name
    query: Query
    columns: tuple[Name, ...] = ()
    partition: tuple[PartitionValue, ...] = ()
    overwrite: bool = False
    options: tuple[OptionEntry, ...] = ()
    on_conflict: ConflictAction | None = None


@dataclass(frozen=True)
class ChangeRows(Insert):
    """UPDATE, DELETE or MERGE: an INSERT OVERWRITE of its table, by a query whose tree is a ``RowChange``."""


@dataclass(frozen=True)
class ExecuteStatementSet(Statement):
    """EXECUTE STATEMENT SET BEGIN .. END: several sinks in one job."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True)
class Subscribe(Statement):
    """SUBSCRIBE [TO] a query or a table: the changelog of it."""

    query: Query


@dataclass(frozen=True)
class Verify(Statement):
    """VERIFY query AGAINST BATCH [ON backend] [UP TO moment]; the moment is text as written."""

    query: Query
    backend: Name | None = None
    up_to: Name | None = None


class ExplainStage(StrEnum):
    """The stages of EXPLAIN; without a stage it prints LOGICAL, OPTIMIZED and PHYSICAL."""

    # the value is the word in lower case: the builder makes the stage from the token
    LOGICAL = "logical"
    OPTIMIZED = "optimized"
    PHYSICAL = "physical"
    RULES = "rules"
    CHANGELOG_MODE = "changelog_mode"
    MERMAID = "mermaid"
    JSON = "json"


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN [stage, ..] statement."""

    stages: tuple[ExplainStage, ...]
    statement: Query | Insert | ExecuteStatementSet


@dataclass(frozen=True)
class ExplainWhy(Statement):
    """EXPLAIN WHY [NOT] ROW (conditions) [LIMIT n] FOR query, or OF VIEW name. ``missing`` asks why there is
    no such row. ``limit``: the most input rows of each table; None for the default.
    """

    conditions: tuple[SqlExpression, ...]
    subject: Query | Name
    missing: bool = False
    limit: int | None = None


@dataclass(frozen=True)
class Set(Statement):
    """SET 'key' = 'value'. Without a key it lists the settings, without a value it shows one."""

    key: str | None = None
    value: str | None = None
    key_span: Span = field(default=NOWHERE, compare=False)
    value_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Reset(Statement):
    """RESET ['key']."""

    key: str | None = None
    key_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class CreateFunction(Statement):
    """CREATE FUNCTION name AS 'module.object' LANGUAGE PYTHON."""

    name: Name
    target: str
    target_span: Span = field(default=NOWHERE, compare=False)
    or_replace: bool = False
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True)
class DropFunction(Statement):
    """DROP FUNCTION name."""

    name: Name
    if_exists: bool = False


class ShowKind(StrEnum):
    """The kinds of SHOW."""

    # the value in upper case is the SQL word, which errors show
    CATALOGS = "catalogs"
    DATABASES = "databases"
    TABLES = "tables"
    VIEWS = "views"
    MATERIALIZED_VIEWS = "materialized views"
    COLUMNS = "columns"
    FUNCTIONS = "functions"
    CONNECTORS = "connectors"
    JOBS = "jobs"
    SETTINGS = "settings"
    CURRENT_CATALOG = "current catalog"
    CURRENT_DATABASE = "current database"


IN_NAMESPACE = (ShowKind.DATABASES, ShowKind.TABLES, ShowKind.VIEWS, ShowKind.MATERIALIZED_VIEWS)
"""Kinds of SHOW that accept IN: the objects of a catalog or of a database."""


@dataclass(frozen=True)
class ShowNamespace:
    """The catalog of SHOW DATABASES IN, or the database of SHOW TABLES IN."""

    name: Name


@dataclass(frozen=True)
class Show(Statement):
    """SHOW kind. ``table`` is set for SHOW COLUMNS FROM t only, ``like`` is an optional LIKE pattern over
    names. Without ``namespace`` the current namespace is listed.
    """

    kind: ShowKind
    table: Name | None = None
    like: str | None = None
    namespace: ShowNamespace | None = None


@dataclass(frozen=True)
class ShowMetrics(Statement):
    """SHOW METRICS [FOR JOB 'id'] [LIKE 'pattern']; the pattern is over metric names."""

    job_id: str | None = None
    like: str | None = None
    job_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class ShowCreate(Statement):
    """SHOW CREATE TABLE or VIEW."""

    name: Name
    view: bool = False


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE table or view, 'path' or query."""

    subject: Name | Query


@dataclass(frozen=True)
class DescribeJob(Statement):
    """DESCRIBE JOB 'id'."""

    job_id: str
    job_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class ExplainJob(Statement):
    """EXPLAIN ANALYZE JOB 'id', or EXPLAIN WHY NO OUTPUT FOR JOB 'id' (``silence``)."""

    job_id: str
    silence: bool
    job_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Savepoint:
    """Where a savepoint is written: WITH SAVEPOINT ['path'], or CREATE SAVEPOINT .. TO 'path'."""

    path: str | None = None
    path_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class StopJob(Statement):
    """STOP JOB 'id' [WITH SAVEPOINT ['path']] [WITH DRAIN]: take a checkpoint, then stop. A drained job
    closes its windows first.
    """

    job_id: str
    job_span: Span = field(default=NOWHERE, compare=False)
    savepoint: Savepoint | None = None
    drain: bool = False


@dataclass(frozen=True)
class CreateSavepoint(Statement):
    """CREATE SAVEPOINT OF JOB 'id' [TO 'path']: copy a checkpoint that is taken now; the job continues."""

    job_id: str
    savepoint: Savepoint
    job_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class CancelJob(Statement):
    """CANCEL JOB 'id': stop at once."""

    job_id: str
    job_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class AlterJob(Statement):
    """ALTER JOB 'id' SET PARALLELISM n."""

    job_id: str
    parallelism: int
    job_span: Span = field(default=NOWHERE, compare=False)
    parallelism_span: Span = field(default=NOWHERE, compare=False)


JobControl = DescribeJob | StopJob | CancelJob | AlterJob | CreateSavepoint
"""The statements that describe or change one job."""


@dataclass(frozen=True)
class Help(Statement):
    """HELP [topic]."""

    topic: str | None = None


@dataclass(frozen=True)
class Quit(Statement):
    """QUIT or EXIT, for the shell."""


@dataclass(frozen=True)
class SetOptions:
    """SET ('key' = 'value', ..): set these options."""

    options: tuple[OptionEntry, ...]


@dataclass(frozen=True)
class ResetOptions:
    """RESET ('key', ..): reset these options to their defaults."""

    keys: tuple[Name, ...]


@dataclass(frozen=True)
class PositionedColumn:
    """A column and its position: ``first``, ``after`` another column, or last. A modified column without a
    position keeps its own.
    """

    column: ColumnDef
    first: bool = False
    after: Name | None = None


@dataclass(frozen=True)
class ChangeParts:
    """ADD or (``modify``) MODIFY columns, the watermark, the primary key."""

    columns: tuple[PositionedColumn, ...] = ()
    watermark: WatermarkDef | None = None
    primary_key: tuple[Name, ...] = ()
    modify: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class DropColumns:
    """DROP column or DROP (column, ..)."""

    names: tuple[Name, ...]


@dataclass(frozen=True)
class DropWatermark:
    """DROP WATERMARK."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class DropKey:
    """DROP PRIMARY KEY."""


@dataclass(frozen=True)
class RenameColumn:
    """RENAME old TO new."""

    old: Name
    new: Name


@dataclass(frozen=True)
class RenameTable:
    """RENAME TO new."""

    new: Name


Alteration = (
    SetOptions
    | ResetOptions
    | ChangeParts
    | DropColumns
    | DropWatermark
    | DropKey
    | RenameColumn
    | RenameTable
)


@dataclass(frozen=True)
class AlterTable(Statement):
    """ALTER TABLE: one change."""

    name: Name
    change: Alteration


@dataclass(frozen=True)
class CreateCatalog(Statement):
    """CREATE CATALOG name WITH (..)."""

    name: Name
    options: tuple[OptionEntry, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropCatalog(Statement):
    """DROP CATALOG name."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class CreateDatabase(Statement):
    """CREATE DATABASE [catalog.]name."""

    name: Name
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropDatabase(Statement):
    """DROP DATABASE [catalog.]name [CASCADE]."""

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Use(Statement):
    """USE [catalog.]database, or USE CATALOG name."""

    name: Name
    catalog: bool = False


NamespaceStatement = CreateCatalog | DropCatalog | CreateDatabase | DropDatabase | Use
