"""From lark's trees to statement nodes: one method a rule of statements.lark."""

from __future__ import annotations

import re
from typing import Any, get_args

from lark import Token, Transformer

from penstock.catalog.connectors.spark import SETTING_PREFIX
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.persistence.show_create import quoted_name
from penstock.planner.parser.hints import table_options
from penstock.planner.parser.query_parser import parse_expression, parse_query
from penstock.planner.parser.syntax_nodes import NOWHERE, OptionEntry, moved
from penstock.planner.parser.type_parser import type_of
from penstock.planner.statements import nodes
from penstock.planner.statements.alter_table_builder import AlterationBuilder
from penstock.planner.statements.nodes import Name, SqlExpression
from penstock.planner.statements.row_change_parser import parse_row_change


class NamespaceBuilder(Transformer):
    """Transforms the rules of catalogs and databases. Names and options are nodes already; optional words are
    flags.
    """

    span: Span

    def create_catalog(self, children: list[Any]) -> nodes.CreateCatalog:
        options = [
            option
            for child in children
            if isinstance(child, tuple)
            for option in child
            if isinstance(option, OptionEntry)
        ]
        return nodes.CreateCatalog(
            _name(children), tuple(options), _has(children, "if_not_exists"), span=self.span
        )

    def drop_catalog(self, children: list[Any]) -> nodes.DropCatalog:
        return nodes.DropCatalog(_name(children), _has(children, "if_exists"), span=self.span)

    def create_database(self, children: list[Any]) -> nodes.CreateDatabase:
        return nodes.CreateDatabase(_name(children), _has(children, "if_not_exists"), span=self.span)

    def drop_database(self, children: list[Any]) -> nodes.DropDatabase:
        return nodes.DropDatabase(
            _name(children), _has(children, "if_exists"), _has(children, "cascade"), span=self.span
        )

    def use_catalog(self, children: list[Any]) -> nodes.Use:
        return nodes.Use(_name(children), True, span=self.span)

    def use(self, children: list[Any]) -> nodes.Use:
        return nodes.Use(_name(children), span=self.span)


def _name(children: list[Any]) -> Name:
    return next(child for child in children if isinstance(child, Name))


@dataclass(frozen=True)
class _Flag:
    """An optional word that was written."""

    name: str
    span: Span | None = None


class _Names(tuple[Name, ...]):
    """The names of a parenthesised list."""


class _Partition(tuple[nodes.PartitionValue, ...]):
    """PARTITION (..) of an INSERT."""


class _Partitioned(_Names):
    """The names of PARTITIONED BY."""


class _PrimaryKey(_Names):
    """The names of PRIMARY KEY."""


@dataclass(frozen=True)
class _KeyColumn:
    """A column declared as ``a INT PRIMARY KEY NOT ENFORCED``."""

    column: nodes.PhysicalColumnDef


class _Options(tuple[OptionEntry, ...]):
    """The options of a WITH clause."""


class _On(Name):
    """The backend of ON."""


class _UpTo(Name):
    """The timestamp of UP TO."""


class _Comment(str):
    """The text of COMMENT."""

    __slots__ = ()


def _all(children: list[Any], kind: type) -> list[Any]:
    return [child for child in children if type(child) is kind]


def _one(children: list[Any], kind: type, default: Any = None) -> Any:
    return next(iter(_all(children, kind)), default)


def _has(children: list[Any], flag: str) -> bool:
    return any(isinstance(child, _Flag) and child.name == flag for child in children)


def _span(token: Any) -> Span:
    return Span(token.start_pos, token.end_pos)


def _text(token: Any) -> str:
    return token.source.text


def _unchecked_key(span: Span, instead: str) -> PenstockError:
    return PenstockError(
        "SQL-1305",
        "a primary key is never enforced on a stream",
        span=span,
        hint=f"{instead}: the key is a promise about the data",
        sqlstate="0A000",
    )


_CLOSING_HINT = re.compile(r"\s*/\*\+.*?\*/", re.DOTALL)  # belongs to the query it ends, though no token does
# Flink's words for the parts of a table that LIKE copies
_COPIED = ("ALL", "CONSTRAINTS", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")


def _excluded(region: Any) -> frozenset[str]:
    """The parts that a LIKE clause does not copy: ``(INCLUDING ALL EXCLUDING OPTIONS)``."""
    words = region.value.strip().removeprefix("(").removesuffix(")").upper().split()
    pairs = list(zip(words[::2], words[1::2], strict=False))
    # pairs of INCLUDING | EXCLUDING | OVERWRITING and a part
    if len(words) % 2 or any(
        how not in ("INCLUDING", "EXCLUDING", "OVERWRITING") or what not in _COPIED for how, what in pairs
    ):
        hint = f"write (EXCLUDING part), parts being {', '.join(_COPIED)}"
        raise PenstockError(
            "SQL-1001", "this is no list of what LIKE copies", span=_span(region), hint=hint, sqlstate="42601"
        )
    return frozenset(what for how, what in pairs if how == "EXCLUDING")


class StatementBuilder(NamespaceBuilder, AlterationBuilder):
    """Builds the node of one statement. SQL inside it is parsed at its offset, so all spans are those of the
    statement.
    """

    def __init__(self, text: str) -> None:
        # tokens need no transformation: skipping them saves a call for each
        super().__init__(visit_tokens=False)
        self.sql = text
        self.span = Span(0, len(text.rstrip()))

    def __default__(self, data: Any, children: list[Any], meta: Any) -> Any:
        # a rule without a method is an optional word, such as IF EXISTS: its name is all there is to know
        return _Flag(str(data))

    def statement(self, children: list[Any]) -> Any:
        return children[0]

    # parts

    def name(self, children: list[Any]) -> Any:
        token = children[0]
        return Name(_text(token), _span(token), self.sql[token.start_pos] in '`"')

    def path(self, children: list[Any]) -> Any:
        tokens = [child for child in children if isinstance(child, Token)]
        for token in tokens:
            # `a.b` as one name would look like a path
            if "." in _text(token):
                hint = "dots separate catalog, database and table"
                raise PenstockError(
                    "SQL-1353",
                    "a name cannot have a dot in it",
                    span=_span(token),
                    hint=hint,
                    sqlstate="42602",
                )
        span = Span(tokens[0].start_pos, tokens[-1].end_pos)
        return Name(".".join(map(_text, tokens)), span, self.sql[tokens[0].start_pos] in '`"')

    def name_list(self, children: list[Any]) -> _Names:
        return _Names(children)

    def partitioned(self, children: list[Any]) -> _Partitioned:
        return _Partitioned(children[0])

    def comment(self, children: list[Any]) -> _Comment:
        return _Comment(_text(children[0]))

    def option(self, children: list[Any]) -> OptionEntry:
        # keys are case-insensitive, except those of Spark: spark.sql.shuffle.partitions
        key, value = children
        written = self._setting(key)
        folded = written.lower()
        return OptionEntry(
            written if folded.startswith(SETTING_PREFIX) else folded, _text(value), _span(key), _span(value)
        )

    def with_options(self, children: list[Any]) -> _Options:
        return _Options(children)

    def _expression(self, token: Any) -> SqlExpression:
        # parsed within the whole statement, so that spans need no correction
        tree = parse_expression(self.sql, token.start_pos, token.end_pos)
        return SqlExpression(self.sql[token.start_pos : token.end_pos], tree, _span(token))

    # columns

    def physical(self, children: list[Any]) -> nodes.PhysicalColumnDef | _KeyColumn:
        name, keys = children[0], _all(children, bool)
        column = nodes.PhysicalColumnDef(name, type_of(children[1].syntax), not _has(children, "not_null"))
        if not keys:
            return column
        # a INT PRIMARY KEY: the promise has to be written out, as in a list of keys
        if not keys[0]:
            raise _unchecked_key(name.span, f"write {name.text} .. PRIMARY KEY NOT ENFORCED")
        return _KeyColumn(column)

    def own_key(self, children: list[Any]) -> bool:
        return _has(children, "not_enforced")

    def computed(self, children: list[Any]) -> nodes.ComputedColumnDef:
        return nodes.ComputedColumnDef(children[0], self._expression(children[1]))

    def metadata_key(self, children: list[Any]) -> Any:
        return children[0]

    def metadata(self, children: list[Any]) -> nodes.MetadataColumnDef:
        name = children[0]
        # METADATA FROM 'key'; without FROM the key is the column's name
        token = next((child for child in children[2:] if isinstance(child, Token)), None)
        key, span = (name.text, name.span) if token is None else (_text(token), _span(token))
        kind = type_of(children[1].syntax)
        return nodes.MetadataColumnDef(
            name, kind, key, _has(children, "virtual"), not _has(children, "not_null"), span
        )

    def watermark(self, children: list[Any]) -> nodes.WatermarkDef:
        return nodes.WatermarkDef(children[0], self._expression(children[1]))

    def primary_key(self, children: list[Any]) -> _PrimaryKey:
        names = _one(children, _Names)
        # PRIMARY KEY (..) without NOT ENFORCED promises a check that no stream can do
        if not _has(children, "not_enforced"):
            span = Span(names[0].span.start, names[-1].span.end)
            raise _unchecked_key(span, "write PRIMARY KEY (..) NOT ENFORCED")
        return _PrimaryKey(names)

    # tables and views

    def create_table(self, children: list[Any]) -> nodes.CreateTable:
        name = _one(children, Name)
        # a INT PRIMARY KEY NOT ENFORCED is the column and PRIMARY KEY (a) NOT ENFORCED
        own_keys = _all(children, _KeyColumn)
        children = [child.column if isinstance(child, _KeyColumn) else child for child in children]
        children += [_PrimaryKey([child.column.name]) for child in own_keys]
        # columns, watermark and primary key in any order between the parentheses
        columns = [c for c in children if isinstance(c, nodes.ColumnDef)]
        watermarks = _all(children, nodes.WatermarkDef)
        keys = _all(children, _PrimaryKey)
        if len(watermarks) > 1:
            raise PenstockError(
                "SQL-1304", "a table has one watermark, here is a second", span=watermarks[1].column.span
            )
        if len(keys) > 1:
            raise PenstockError(
                "SQL-1304", "a table has one primary key, here is a second", span=keys[1][0].span
            )
        comment = _one(children, _Comment)
        return nodes.CreateTable(
            name,
            tuple(columns),
            tuple(_one(children, _Options, ())),
            watermark=watermarks[0] if watermarks else None,
            primary_key=tuple(keys[0]) if keys else (),
            partitioned_by=tuple(_one(children, _Partitioned, ())),
            comment=None if comment is None else str(comment),
            if_not_exists=_has(children, "if_not_exists"),
            temporary=_has(children, "temporary"),
            span=self.span,
        )

    def create_table_like(self, children: list[Any]) -> nodes.CreateTableLike:
        # CREATE TABLE a (..) LIKE b (EXCLUDING OPTIONS)
        source = _all(children, Name)[1]
        region = next((child for child in children if isinstance(child, Token)), None)
        excluding = frozenset() if region is None else _excluded(region)
        return nodes.CreateTableLike(
            self.create_table([c for c in children if c is not source]), source, excluding, span=self.span
        )

    def create_table_as(self, children: list[Any]) -> nodes.CreateTableAs:
        query = _one(children, nodes.Query)
        return nodes.CreateTableAs(
            self.create_table([c for c in children if c is not query]), query, span=self.span
        )

    def create_view(self, children: list[Any]) -> nodes.CreateView:
        return nodes.CreateView(
            _one(children, Name),
            _one(children, nodes.Query),
            tuple(_one(children, _Names, ())),
            or_replace=_has(children, "or_replace"),
            if_not_exists=_has(children, "if_not_exists"),
            temporary=_has(children, "temporary"),
            span=self.span,
        )

    def drop_table(self, children: list[Any]) -> nodes.DropTable:
        return nodes.DropTable(_one(children, Name), _has(children, "if_exists"), span=self.span)

    def drop_view(self, children: list[Any]) -> nodes.DropView:
        return nodes.DropView(_one(children, Name), _has(children, "if_exists"), span=self.span)

    def create_materialized(self, children: list[Any]) -> nodes.CreateMaterializedView:
        names, comment = tuple(_one(children, _Names, ())), _one(children, _Comment)
        name, query = _one(children, Name), _one(children, nodes.Query)
        text = None if comment is None else str(comment)
        return nodes.CreateMaterializedView(
            name, query, names, if_not_exists=_has(children, "if_not_exists"), comment=text, span=self.span
        )

    def drop_materialized(self, children: list[Any]) -> nodes.DropMaterializedView:
        return nodes.DropMaterializedView(_one(children, Name), _has(children, "if_exists"), span=self.span)

    # functions

    def language(self, children: list[Any]) -> _Flag:
        token = children[0]
        # LANGUAGE JAVA, LANGUAGE SCALA
        if token.value.upper() != "PYTHON":
            hint = "write LANGUAGE PYTHON"
            raise PenstockError(
                "SQL-1336",
                f"functions are written in Python, not in {token.value}",
                span=_span(token),
                hint=hint,
                sqlstate="0A000",
            )
        return _Flag("language")

    def create_function(self, children: list[Any]) -> nodes.CreateFunction:
        # AS 'module.object'
        target = next(child for child in children if isinstance(child, Token))
        return nodes.CreateFunction(
            _one(children, Name),
            _text(target),
            _span(target),
            or_replace=_has(children, "or_replace"),
            if_not_exists=_has(children, "if_not_exists"),
            temporary=_has(children, "temporary"),
            span=self.span,
        )

    def drop_function(self, children: list[Any]) -> nodes.DropFunction:
        return nodes.DropFunction(_one(children, Name), _has(children, "if_exists"), span=self.span)

    # queries

    def query(self, children: list[Any]) -> nodes.Query:
        token = children[0]
        # a hint behind the last token: SELECT * FROM t /*+ OPTIONS(..) */
        closing = _CLOSING_HINT.match(self.sql, token.end_pos)
        end = token.end_pos if closing is None else closing.end()
        tree = parse_query(self.sql[:end], token.start_pos)
        return nodes.Query(self.sql[token.start_pos : end], tree, span=Span(token.start_pos, end))

    def subscribe(self, children: list[Any]) -> nodes.Subscribe:
        query = children[0]
        # SUBSCRIBE t is SUBSCRIBE SELECT * FROM t, with errors at the table's name
        if isinstance(query, Name):
            everything = parse_query(f"SELECT * FROM {quoted_name(query.text)}")
            query = nodes.Query(query.text, moved(everything, query.span), span=query.span)
        return nodes.Subscribe(query, span=self.span)

    def verify(self, children: list[Any]) -> nodes.Verify:
        return nodes.Verify(
            _one(children, nodes.Query),
            _one(children, _On, None),
            _one(children, _UpTo, None),
            span=self.span,
        )

    def verify_on(self, children: list[Any]) -> _On:
        return _On(children[0].value.lower(), _span(children[0]))

    def up_to(self, children: list[Any]) -> _UpTo:
        return _UpTo(_text(children[-1]), _span(children[-1]))

    def insert(self, children: list[Any]) -> nodes.Insert:
        target, query = _one(children, Name), _one(children, nodes.Query)
        columns = tuple(_one(children, _Names, ()))
        partition = tuple(_one(children, _Partition, ()))
        span, overwrites = Span(target.span.start, query.span.end), _has(children, "overwrite")
        # INSERT INTO t /*+ OPTIONS(..) */ (a, b) SELECT ..
        first = min(part.span.start for part in (query, *columns, *(p.column for p in partition)))
        options = table_options(self.sql, target.span.end, first)
        action = next((a for a in get_args(nodes.ConflictAction) if _has(children, f"conflict_{a}")), None)
        return nodes.Insert(target, query, columns, partition, overwrites, options, action, span=span)

    def row_change(self, children: list[Any]) -> nodes.ChangeRows:
        return parse_row_change(self.sql, children[0].start_pos, children[0].end_pos)

    def partition(self, children: list[Any]) -> _Partition:
        return _Partition(children)

    def partition_value(self, children: list[Any]) -> nodes.PartitionValue:
        return nodes.PartitionValue(children[0], _text(children[1]) if len(children) > 1 else None)

    def statement_set(self, children: list[Any]) -> nodes.ExecuteStatementSet:
        # BEGIN STATEMENT SET; END
        if not children:
            raise PenstockError(
                "SQL-1004",
                "the statement set holds no INSERT",
                span=self.span,
                hint="write INSERT INTO .. ; before END",
            )
        return nodes.ExecuteStatementSet(tuple(children), span=self.span)

    def stage(self, children: list[Any]) -> nodes.ExplainStage | None:
        # EXTENDED, FORMATTED, COST of Spark, ESTIMATED_COST of Flink: the stages that are printed anyway
        word = children[0].value.lower()
        word = "json" if word == "json_execution_plan" else word
        return nodes.ExplainStage(word) if word in set(nodes.ExplainStage) else None

    def with_implementation(self, children: list[Any]) -> nodes.ExplainStage:
        return nodes.ExplainStage.PHYSICAL

    def without_implementation(self, children: list[Any]) -> nodes.ExplainStage:
        return nodes.ExplainStage.LOGICAL

    def explain(self, children: list[Any]) -> nodes.Explain:
        return nodes.Explain(tuple(_all(children, nodes.ExplainStage)), children[-1], span=self.span)

    def explain_why(self, children: list[Any]) -> nodes.ExplainWhy:
        tokens = [child for child in children if isinstance(child, Token)]
        conditions = tuple(self._expression(token) for token in tokens if token.type == "EXPRESSION")
        limit = next((token for token in tokens if token.type == "NUMBER"), None)
        # LIMIT 0 would show nothing, LIMIT 1.5 is no number of rows
        if limit is not None and (not limit.value.isdigit() or int(limit.value) < 1):
            raise PenstockError(
                "SQL-1001", "LIMIT takes a whole number of rows", span=_span(limit), sqlstate="42601"
            )
        return nodes.ExplainWhy(
            conditions,
            children[-1],
            _has(children, "missing"),
            None if limit is None else int(limit.value),
            span=self.span,
        )

    # the session and its jobs

    def set_option(self, children: list[Any]) -> nodes.Set:
        # SET lists the settings, SET key shows one, SET key = value changes it
        key = children[0] if children else None
        value = children[1] if len(children) > 1 else None
        return nodes.Set(
            None if key is None else self._setting(key),
            None if value is None else self._setting(value),
            NOWHERE if key is None else _span(key),
            NOWHERE if value is None else _span(value),
            span=self.span,
        )

    def _setting(self, token: Any) -> str:
        return (
            # a quoted value without its quotes, any other as it was written
            _text(token)
            if token.type == "STRING" or token.value.startswith(("'", "`", '"'))
            else token.value.strip()
        )

    def reset_option(self, children: list[Any]) -> nodes.Reset:
        if not children:
            return nodes.Reset(span=self.span)
        return nodes.Reset(self._setting(children[0]), _span(children[0]), span=self.span)

    def show_kind(self, children: list[Any]) -> nodes.ShowKind:
        return nodes.ShowKind(" ".join(word.value for word in children).lower())

    def like(self, children: list[Any]) -> Any:
        return children[0]

    def show(self, children: list[Any]) -> nodes.Show:
        # SHOW kind [FROM table | IN namespace] [LIKE 'pattern']; only COLUMNS has no node of its own
        like = next((_text(child) for child in children if isinstance(child, Token)), None)
        kind = _one(children, nodes.ShowKind, nodes.ShowKind.COLUMNS)
        namespace = _one(children, nodes.ShowNamespace)
        # SHOW TABLES IN db, but not SHOW JOBS IN db
        if namespace is not None and kind not in nodes.IN_NAMESPACE:
            raise PenstockError(
                "SQL-1001",
                f"SHOW {kind.upper()} takes no IN",
                span=namespace.name.span,
                hint=f"write SHOW {kind.upper()}",
                sqlstate="42601",
            )
        table = _one(children, nodes.FilePath) or _one(children, Name)
        return nodes.Show(kind, table, like, namespace, span=self.span)

    def show_namespace(self, children: list[Any]) -> nodes.ShowNamespace:
        return nodes.ShowNamespace(children[0])

    def show_metrics(self, children: list[Any]) -> nodes.ShowMetrics:
        return nodes.ShowMetrics(None, _text(children[0]) if children else None, span=self.span)

    def show_job_metrics(self, children: list[Any]) -> nodes.ShowMetrics:
        # SHOW METRICS FOR JOB 'id' LIKE 'pattern'
        job, *like = children
        return nodes.ShowMetrics(_text(job), _text(like[0]) if like else None, _span(job), span=self.span)

    def show_create(self, children: list[Any]) -> nodes.ShowCreate:
        return nodes.ShowCreate(
            _one(children, nodes.FilePath) or _one(children, Name), _has(children, "view"), span=self.span
        )

    def file(self, children: list[Any]) -> nodes.FilePath:
        return nodes.FilePath(_text(children[0]), _span(children[0]), True)

    def describe(self, children: list[Any]) -> nodes.Describe:
        # DESCRIBE QUERY SELECT ..
        if len(children) > 1:
            word = children[0]
            if word.value.upper() != "QUERY":
                raise PenstockError(
                    "SQL-1001",
                    f'unexpected "{word.value}"',
                    span=_span(word),
                    hint="write DESCRIBE t, DESCRIBE SELECT .. or DESCRIBE QUERY SELECT ..",
                    sqlstate="42601",
                )
            return nodes.Describe(children[1], span=self.span)
        return nodes.Describe(children[0], span=self.span)

    def explain_job(self, children: list[Any]) -> nodes.ExplainJob:
        return nodes.ExplainJob(_text(children[0]), False, _span(children[0]), span=self.span)

    def explain_silence(self, children: list[Any]) -> nodes.ExplainJob:
        return nodes.ExplainJob(_text(children[0]), True, _span(children[0]), span=self.span)

    def describe_job(self, children: list[Any]) -> nodes.DescribeJob:
        return nodes.DescribeJob(_text(children[0]), _span(children[0]), span=self.span)

    def savepoint(self, children: list[Any]) -> Any:
        return nodes.Savepoint(_text(children[0]), _span(children[0])) if children else nodes.Savepoint()

    def stop_job(self, children: list[Any]) -> nodes.StopJob:
        # STOP JOB 'id' WITH SAVEPOINT 'path' WITH DRAIN, both optional
        savepoint = _one(children, nodes.Savepoint)
        return nodes.StopJob(
            _text(children[0]), _span(children[0]), savepoint, _has(children, "drain"), span=self.span
        )

    def create_savepoint(self, children: list[Any]) -> nodes.CreateSavepoint:
        job, *path = children
        return nodes.CreateSavepoint(_text(job), self.savepoint(path), _span(job), span=self.span)

    def cancel_job(self, children: list[Any]) -> nodes.CancelJob:
        return nodes.CancelJob(_text(children[0]), _span(children[0]), span=self.span)

    def alter_job(self, children: list[Any]) -> nodes.AlterJob:
        job, number = children
        # SET PARALLELISM 1.5, SET PARALLELISM 0
        if not number.value.isdigit() or int(number.value) < 1:
            raise PenstockError(
                "SQL-1001", "a parallelism is a whole number above 0", span=_span(number), sqlstate="42601"
            )
        return nodes.AlterJob(_text(job), int(number.value), _span(job), _span(number), span=self.span)

    def help(self, children: list[Any]) -> nodes.Help:
        return nodes.Help(children[0].value.strip("'") if children else None, span=self.span)

    def quit(self, children: list[Any]) -> nodes.Quit:
        return nodes.Quit(span=self.span)
