"""The run of one test: its tables replaced by given rows, its queries run by the engine of this process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.registry import can_cast
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, View, WatermarkRule
from penstock.catalog.types import STRING
from penstock.client.results.result import Result
from penstock.client.results.result_stream import op_rows
from penstock.client.session import Session
from penstock.client.statements.dispatch import LocatedStatement
from penstock.planner.expressions.nodes import Cast, Column, Expression, Literal
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.sink import Sink
from penstock.planner.statements import nodes
from penstock.repl.sql_tests.declarations import Expect, SqlTest, SqlTestFile, TableInput
from penstock.repl.sql_tests.row_difference import difference

# a test has one answer on every machine: no Spark, no files, and every row a step of the changelog
_SETTINGS = {
    "bounded.backend": "duckdb",
    "parallelism.default": "1",
    "execution.batch.max-rows": "1",
    "execution.buffer-timeout": "0",
    "execution.checkpointing.interval": "0",
    "execution.checkpointing.dir": "",
}
# statements of a script that declare names; the others start something, or answer nobody
_DECLARATIONS = (
    nodes.CreateTable,
    nodes.CreateTableLike,
    nodes.CreateView,
    nodes.CreateFunction,
    nodes.DropTable,
    nodes.DropView,
    nodes.DropFunction,
    nodes.CreateDatabase,
    nodes.Use,
    nodes.AlterTable,
    nodes.Set,
    nodes.Reset,
)
# the column that carries the watermarks of GIVEN; hidden behind a view
_WATERMARK = "watermark of the test"
_FIND = "CLI-6181"


@dataclass(frozen=True)
class Outcome:
    """How a test ended: ``lines`` show what differs, ``error`` is what kept it from an answer."""

    test: SqlTest
    seconds: float
    lines: tuple[str, ...] = ()
    error: PenstockError | None = None

    @property
    def passed(self) -> bool:
        """Whether all expected rows came, and no others."""
        return not self.lines and self.error is None


class _Answer(NamedTuple):
    schema: Schema
    final: pa.Table
    changes: pa.Table


def run_test(file: SqlTestFile, test: SqlTest, settings: Mapping[str, str] | None = None) -> Outcome:
    """Run a test in a session of its own and compare. Never raises an error of the test or its script."""
    start, lines, error = time.perf_counter(), [], None
    session = Session(dict(settings or {}) | _SETTINGS)
    try:
        run = _Run(session, file, test)
        for expect in test.expected:
            lines += run.compare(expect)
    except PenstockError as raised:
        # an error of the script has its place there already
        error = raised.with_source(test.source, test.offset)
    finally:
        session.close()
    return Outcome(test, time.perf_counter() - start, tuple(lines), error)


class _Run:
    """One test in its session: the script's names declared, the given tables in their places."""

    def __init__(self, session: Session, file: SqlTestFile, test: SqlTest) -> None:
        self._session, self._catalog = session, session.catalog
        self._inserts: dict[str, list[tuple[LocatedStatement, nodes.Insert]]] = {}
        self._queries: list[LocatedStatement] = []
        self._answers: dict[str, _Answer] = {}
        # full names of tables that have their rows
        self._ready: set[str] = set()
        # tables whose rows are being computed: one that reads itself is found
        self._open: list[str] = []
        for statement in file.statements:
            self._declare(statement)
        for given in test.given:
            self._replace(given)

    def _declare(self, statement: LocatedStatement) -> None:
        match statement.node:
            case nodes.Query():
                self._queries.append(statement)
            # the rows of its table would be others before and after it
            case nodes.ChangeRows(target=name) as changes:
                raise statement.locate(
                    PenstockError(
                        "SQL-1601",
                        f"{changes.query.tree.args['kind']} is not run in a test",
                        span=name.span,
                        hint=f"give {name.text} its rows in the test; write it into another script",
                        sqlstate="0A000",
                    )
                )
            case nodes.Insert() as insert:
                self._add_insert(statement, insert)
            case nodes.ExecuteStatementSet(inserts):
                for insert in inserts:
                    self._add_insert(statement, insert)
            # their rows are those of their queries, so that nothing is started for them
            case nodes.CreateMaterializedView(name=name, query=query):
                view = nodes.CreateView(name, query, temporary=True, span=statement.node.span)
                self._session.run(replace(statement, node=view))
            case nodes.CreateTableAs(table, query):
                view = nodes.CreateView(table.name, query, temporary=True, span=statement.node.span)
                self._session.run(replace(statement, node=view))
            case node if isinstance(node, _DECLARATIONS):
                self._session.run(statement)
                # the script's own SET does not start Spark, and writes no checkpoints
                for key, value in _SETTINGS.items():
                    self._session.settings.set(key, value)

    def _add_insert(self, statement: LocatedStatement, insert: nodes.Insert) -> None:
        self._inserts.setdefault(self._full(insert.target.text), []).append((statement, insert))

    def _full(self, name: str) -> str:
        return self._catalog.qualified(name).lower()

    def _replace(self, given: TableInput) -> None:
        """Replace a table by its given rows."""
        name = given.table
        table = self._catalog.stored_table(name.text, name.span)
        full = self._full(name.text)
        if full in self._ready:
            message = f"{name} is given twice"
            hint = "write further rows behind the first: VALUES (..) WATERMARK '..' VALUES (..)"
            raise PenstockError(_FIND, message, span=name.span, hint=hint)
        fields = [replace(field, role=None) for field in table.source_schema]
        pieces = [self._rows(query, fields, given.columns, name) for query, _ in given.pieces]
        marks = [mark for _, mark in given.pieces]
        if any(mark is not None for mark in marks):
            self._replace_with_watermarks(given, table, pieces)
        else:
            self._register(table, pa.concat_tables([Schema(tuple(fields)).to_arrow().empty_table(), *pieces]))
        self._ready.add(full)

    def _register(self, table: CatalogTable, rows: pa.Table) -> None:
        """Let a table read rows of this process: as a stream, unless its own rows are bounded."""
        streams = boundedness(table) is not Boundedness.BOUNDED
        name = table.name.lower()
        self._session.state.registered.register(name, rows)
        options = {"connector": "registered", "name": name} | ({"source.replay": "true"} if streams else {})
        # metadata columns are columns of the given rows
        self._catalog.replace_table(
            replace(table, options=options, metadata=(), partitioned_by=()), table.name
        )

    def _replace_with_watermarks(
        self, given: TableInput, table: CatalogTable, pieces: list[pa.Table]
    ) -> None:
        """Replace a table by a view over rows with a further column, which carries the watermarks. The
        last row of each piece has the watermark that follows it.
        """
        name = given.table
        if table.watermark is None:
            hint = "declare it in the script: WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
            raise PenstockError(
                _FIND, f"{name} has no WATERMARK FOR, so none can be set", span=name.span, hint=hint
            )
        index = table.schema.index_of(table.watermark.column)
        assert index is not None, "a watermark is of a column"
        time_field = replace(table.schema[index], role=None)
        field = Field(_WATERMARK, time_field.type, True)
        tables = []
        for rows, (_, mark) in zip(pieces, given.pieces, strict=True):
            column = pa.nulls(rows.num_rows, Schema((field,)).to_arrow().field(0).type)
            if mark is not None:
                last = self._rows(mark, [field], (), name).column(0).combine_chunks()
                column = pa.concat_arrays([column.slice(0, rows.num_rows - 1), last])
            tables.append(rows.append_column(pa.field(_WATERMARK, column.type), column))
        hidden = f"{table.name} of the test"
        self._catalog.drop_table(table.name)
        expression: Expression = Column(field.type, True, index=len(table.schema), name=_WATERMARK)
        rule = WatermarkRule(table.watermark.column, expression, "WATERMARK of GIVEN")
        carrier = replace(
            table,
            name=hidden,
            source_schema=Schema((*table.source_schema, field)),
            schema=Schema((*table.schema, field)),
            watermark=rule,
            temporary=True,
        )
        self._catalog.create_table(carrier)
        self._register(carrier, pa.concat_tables(tables))
        self._ready.add(hidden.lower())
        columns = ", ".join(f"`{column.name.replace('`', '``')}`" for column in table.schema)
        self._session.execute(f"CREATE TEMPORARY VIEW `{table.name}` AS SELECT {columns} FROM `{hidden}`")

    def _rows(
        self, query: nodes.Query, fields: list[Field], columns: tuple[nodes.Name, ...], table: nodes.Name
    ) -> pa.Table:
        """Return the rows of VALUES as the columns of a table, cast to their types; a column that is not
        named is NULL.
        """
        plan = self._session.pipeline.bind(query)
        assert isinstance(plan, Sink), "a query ends in the client"
        targets = [self._column(name, fields, table) for name in columns] or list(range(len(fields)))
        if len(targets) != len(plan.schema):
            message = f"{table} takes {len(targets)} columns here, the rows have {len(plan.schema)}"
            hint = f"the columns are {', '.join(fields[i].name for i in targets)}"
            raise PenstockError("SQL-1090", message, span=query.span, hint=hint)
        expressions: list[Expression] = []
        for place, field in enumerate(fields):
            if place not in targets:
                expressions.append(Literal(field.type, True, value=None))
                continue
            source = plan.schema[targets.index(place)]
            if not can_cast(source.type, field.type) and source.type != field.type:
                message = f'column "{field.name}" is {field.type}, the rows have {source.type}'
                raise PenstockError("SQL-1092", message, span=query.span, hint=f"give it a {field.type}")
            value = Column(source.type, True, index=targets.index(place), name=source.name)
            expressions.append(value if source.type == field.type else Cast(field.type, True, arg=value))
        names = tuple(field.name for field in fields)
        try:
            return self._final(Project(plan.input, tuple(expressions), names)).final
        except PenstockError as error:
            raise error.with_span(query.span) from None

    def _column(self, name: nodes.Name, fields: list[Field], table: nodes.Name) -> int:
        names = [field.name.lower() for field in fields]
        if name.text.lower() not in names:
            hint = did_you_mean(name.text, [field.name for field in fields], others=True)
            raise PenstockError(
                "SQL-1042", f'column "{name}" does not exist in {table}', span=name.span, hint=hint
            )
        return names.index(name.text.lower())

    def compare(self, expect: Expect) -> list[str]:
        """Return the lines of what differs from an EXPECT clause."""
        what, answer = self._actual(expect)
        fields = [replace(field, role=None, nullable=True) for field in answer.schema]
        actual = answer.final
        if expect.changes:
            fields, actual = [Field("op", STRING, False), *fields], answer.changes
        table = nodes.Name(what, expect.span)
        places = [self._column(name, fields, table) for name in expect.columns] or list(range(len(fields)))
        wanted = [fields[place] for place in places]
        arrow = Schema(tuple(wanted)).to_arrow()
        rows = arrow.empty_table() if expect.rows is None else self._rows(expect.rows, wanted, (), table)
        # values one by one: a test file holds what a person has written
        expected, came = _tuples(rows), _tuples(actual.select(places))
        lines = difference([field.name for field in wanted], expected, came, ordered=expect.ordered)
        return (
            [f"EXPECT {what}{' CHANGES' if expect.changes else ''}: {lines[0]}", *lines[1:]] if lines else []
        )

    def _actual(self, expect: Expect) -> tuple[str, _Answer]:
        match expect.target:
            case nodes.Query() as query:
                return "(query)", self._answer_query(query, None, expect.span)
            case nodes.Name() as name:
                return name.text, self._answer_name(name)
        if len(self._queries) == 1:
            statement = self._queries[0]
            assert isinstance(statement.node, nodes.Query), "only queries are collected"
            return "(query)", self._answer_query(statement.node, statement, expect.span)
        if not self._queries and len(self._inserts) == 1:
            full = next(iter(self._inserts))
            return full, self._filled(full, expect.span)
        what = f"{len(self._queries)} queries" if self._queries else f"{len(self._inserts)} filled tables"
        raise PenstockError(
            _FIND,
            f"the script has {what}: say which one is expected",
            span=expect.span,
            hint="write EXPECT table VALUES .. or EXPECT (SELECT ..) VALUES ..",
        )

    def _answer_name(self, name: nodes.Name) -> _Answer:
        full = self._full(name.text)
        if full in self._inserts:
            return self._filled(full, name.span)
        relation = self._catalog.resolve(name.text, name.span)
        if not isinstance(relation, View):
            hint = f"INSERT INTO {name} of the script fills it; or EXPECT (SELECT ..) VALUES .."
            message = f"no statement of the script writes to {name}"
            raise PenstockError(_FIND, message, span=name.span, hint=hint)
        query = self._session.parse(f"SELECT * FROM `{'`.`'.join(relation.name.split('.'))}`")[0].node
        assert isinstance(query, nodes.Query), "a SELECT is a query"
        return self._answer_query(query, None, name.span)

    def _filled(self, full: str, span: Span) -> _Answer:
        """Return the rows that the script's INSERTs write to a table, computed once."""
        if full in self._answers:
            return self._answers[full]
        if full in self._ready:
            message = f"{full} is given and also filled by the script"
            raise PenstockError(_FIND, message, span=span, hint="leave one of both out of the test")
        self._open.append(full)
        answers = []
        for statement, insert in self._inserts[full]:
            try:
                self._make_ready(insert, span)
                bound = self._session.pipeline.bind(insert)
                # bound again: its inputs have their rows now
                inner = bound.inputs[0] if isinstance(bound, Sink) else bound
                self._check_sink(bound)
                answers.append(self._final(inner))
            except PenstockError as error:
                raise error if error.code == "CLI-6182" else statement.locate(error) from None
        self._open.pop()
        final = pa.concat_tables([answer.final for answer in answers])
        changes = pa.concat_tables([answer.changes for answer in answers])
        self._answers[full] = _Answer(answers[0].schema, final, changes)
        return self._answers[full]

    def _check_sink(self, bound: LogicalPlan) -> None:
        # what the table cannot take is refused as it is when the script runs
        self._session.pipeline.plan(bound)

    def _answer_query(self, query: nodes.Query, statement: LocatedStatement | None, span: Span) -> _Answer:
        try:
            self._make_ready(query, span)
            bound = self._session.pipeline.bind(query)
            assert isinstance(bound, Sink), "a query ends in the client"
            return self._final(bound.input)
        except PenstockError as error:
            if statement is None or error.code == "CLI-6182":
                raise
            raise statement.locate(error) from None

    def _make_ready(self, statement: nodes.Query | nodes.Insert, span: Span) -> None:
        """Check that every table which a statement reads has its rows: given, or filled by the script."""
        for node in list(self._session.pipeline.bind(statement).walk()):
            table = getattr(node, "table", None)
            if isinstance(node, Sink) or not isinstance(table, CatalogTable):
                continue
            full = table.name.lower()
            if full in self._ready:
                continue
            if full not in self._inserts or full in self._open:
                raise PenstockError(
                    "CLI-6182",
                    f"{table.name} is read, and the test gives it no rows",
                    span=span,
                    hint=f"add GIVEN {table.name} VALUES (..), or GIVEN {table.name} NO ROWS",
                )
            answer = self._filled(full, span)
            self._register(table, answer.final)
            self._ready.add(full)

    def _final(self, plan: LogicalPlan) -> _Answer:
        """Run a plan to its end and return its final rows and its changes."""
        pipeline = self._session.pipeline
        result: Result = pipeline.start(pipeline.plan(Sink(plan, None)))
        fold, changes = result.new_fold(), [result.change_schema.empty_table()]
        while (batch := result.next_to_fold()) is not None:
            fold.add(batch)
            changes.append(pa.Table.from_batches([op_rows(result.visible(batch), result.shape.update_key)]))
        return _Answer(result.schema, result.in_order(fold.rows()), pa.concat_tables(changes))


def _tuples(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []
