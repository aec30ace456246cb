"""The grammar of FROM: tables, subqueries, VALUES, windowing functions, joins and aliases."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import nearest
from penstock.planner.logical.windows import WINDOW_FUNCTIONS
from penstock.planner.parser.file_parser import FILE_FUNCTIONS, FileParser
from penstock.planner.parser.hints import table_options
from penstock.planner.parser.match_recognize_parser import MatchParser
from penstock.planner.parser.over_clause_parser import OverParser
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.pivot_parser import WORDS as PIVOT_WORDS
from penstock.planner.parser.pivot_parser import PivotParser
from penstock.planner.parser.state_parser import StateParser
from penstock.planner.parser.syntax_nodes import (
    AsOf,
    Descriptor,
    JoinedTables,
    LateralQuery,
    NamedArgument,
    PivotedTable,
    ProcessTableCall,
    RowCount,
    SampledTable,
    SnapshotTable,
    TableArgument,
    TableFunctionCall,
    WindowTableFunction,
)
from penstock.planner.parser.version_parser import VersionParser

# words that begin a clause before one of these followers, or anywhere if none are listed
_NO_ALIAS = {
    "ASOF": ("JOIN", "LEFT", "INNER", "RIGHT", "FULL"),
    "MATCH_CONDITION": (),
    "CLUSTER": ("BY",),
    "DISTRIBUTE": ("BY",),
    "SORT": ("BY",),
    "EMIT": ("ON", "CHANGES", "FINAL", "WITH"),
    "LATE": ("ROWS",),
    "MINUS": ("SELECT", "ALL"),
    "TABLESAMPLE": (),
    "PIVOT": (),
    "UNPIVOT": (),
}
_AFTER_QUERY = ("UNION", "INTERSECT", "EXCEPT", "MINUS", "ORDER", "LIMIT", "OFFSET", "FETCH")
"""What may follow a query in parentheses inside of a query."""
_JOIN_SIDES = ("LEFT", "RIGHT", "FULL", "INNER", "CROSS", "SEMI", "ANTI")


class TableParser:
    """Parses the FROM clause."""

    def __init__(self, context: ParserContext, over: OverParser) -> None:
        self._context, self._tokens, self._over = context, context.tokens, over
        self._matches = MatchParser(context, over)
        self._files = FileParser(context)
        self._states = StateParser(context)
        self._pivots = PivotParser(context)
        self._versions = VersionParser(context, self.named_table)

    # aliases

    def alias(self, what: str) -> exp.Identifier | None:
        """Return the alias at the current token, with or without AS, or ``None``."""
        if self._tokens.take_words("AS"):
            if self._tokens.at(TokenType.STRING):
                hint = f"quote names with backticks: `{self._tokens.current.text}`"
                raise PenstockError(
                    "SQL-1001",
                    f"a string cannot be a {what}",
                    span=self._tokens.current_span(),
                    hint=hint,
                    sqlstate="42601",
                )
            return self._tokens.identifier(what)
        # FROM t EMIT CHANGES: EMIT is no alias; FROM t emit is one
        if not self._tokens.is_name() or self._begins_clause():
            return None
        token = self._tokens.current
        # a bare alias may be a misspelt keyword: an error behind it asks "did you mean .."
        if token.token_type is TokenType.VAR:
            self._tokens.implicit_alias = token
        return self._tokens.identifier(what)

    def _begins_clause(self) -> bool:
        followers = _NO_ALIAS.get(self._tokens.word())
        return followers is not None and (not followers or self._tokens.word(1) in followers)

    def column_names(self) -> list[exp.Identifier]:
        """Return the names of ``(a, b, ..)``."""
        self._tokens.need(TokenType.L_PAREN, "(")
        names = self._tokens.separated(lambda: self._tokens.identifier("column"))
        self._tokens.need(TokenType.R_PAREN, ")")
        return names

    def _table_alias(self, node: exp.Expr) -> exp.Expr:
        # FOR SYSTEM_TIME AS OF is allowed on either side of the alias
        first = begin = self._tokens.index
        time = self._as_of()
        if time is not None:
            begin = self._tokens.index
        # t PIVOT (..) AS a, t TABLESAMPLE (..) AS a
        if self._tokens.word() in PIVOT_WORDS and time is None:
            node = self._pivots.table(begin, node)
        name = self.alias("table alias")
        if name is not None:
            self._refuse_misspelt_side(name)
            # AS t (a, b) names the columns too
            columns = self.column_names() if self._tokens.at(TokenType.L_PAREN) else []
            node.set("alias", self._tokens.spanned(begin, exp.TableAlias(this=name, columns=columns)))
        # t AS a PIVOT (..) AS b
        if self._tokens.word() in PIVOT_WORDS and time is None and not isinstance(node, PivotedTable):
            outer = self._pivots.table(first, node)
            # t AS a TABLESAMPLE (..): a is the sample
            if isinstance(outer, SampledTable) and name is not None and not columns:
                outer.set("alias", node.args["alias"].copy())
                return outer
            return self._table_alias(outer)
        time = time or self._as_of()
        return node if time is None else self._at_time(node, time, first)

    def _at_time(self, node: exp.Expr, time: exp.Expr, begin: int) -> exp.Expr:
        if not isinstance(node, TableFunctionCall | LateralQuery):
            return self._tokens.spanned(begin, AsOf(this=node, expression=time))
        # only tables, views and subqueries have versions to join
        hint = "join a table, a view or a subquery in parentheses"
        message = "FOR SYSTEM_TIME AS OF does not go with LATERAL or a table function"
        raise PenstockError(
            "SQL-1721", message, span=self._tokens.span_from(begin), hint=hint, sqlstate="0A000"
        )

    def _as_of(self) -> exp.Expr | None:
        """Return the time of FOR SYSTEM_TIME AS OF, which may precede or follow the alias, or ``None``."""
        if not self._tokens.take_words("FOR"):
            return None
        for word in ("SYSTEM_TIME", "AS", "OF"):
            self._tokens.need_word(word)
        return self._context.scalar()

    def _refuse_misspelt_side(self, name: exp.Identifier) -> None:
        # FROM a LEFFT JOIN b reads LEFFT as an alias of a
        if self._tokens.implicit_alias is not self._tokens.token(-1) or not (
            self._tokens.at_words("JOIN") or self._tokens.at_words("OUTER", "JOIN")
        ):
            return
        meant = nearest(name.name, _JOIN_SIDES)
        if meant is not None:
            span = self._tokens.span_from(self._tokens.index - 1)
            hint = f'did you mean "{meant}"? write AS {name.name} if it is the table\'s alias'
            raise PenstockError(
                "SQL-1001", f'unexpected "{name.name}" before JOIN', span=span, hint=hint, sqlstate="42601"
            )

    # tables

    def table(self) -> exp.Expr:
        """Return one table reference with its alias and its MATCH_RECOGNIZE clauses."""
        # t MATCH_RECOGNIZE (..) a MATCH_RECOGNIZE (..) b
        node = self._table_alias(self._table())
        while self._tokens.at_words("MATCH_RECOGNIZE"):
            node = self._table_alias(self._matches.match_recognize(node))
        return node

    def _table(self) -> exp.Expr:
        begin = self._tokens.index
        # LATERAL (SELECT ..)
        if self._tokens.at(TokenType.L_PAREN):
            return self._in_parentheses(begin)
        if self._tokens.at_words("VALUES"):
            return self.values()
        if self._tokens.take_words("LATERAL"):
            return self._lateral(begin)
        # TABLE(f(..))
        if self._tokens.at_words("TABLE") and self._tokens.at(TokenType.L_PAREN, 1):
            self._tokens.advance(2)
            node = self._table_function()
            self._tokens.need(TokenType.R_PAREN, ")")
            return node
        # DIFF(view AS OF CHECKPOINT 3, view AS OF CHECKPOINT 7)
        if self._versions.begins_difference():
            return self._versions.difference(begin)
        # f(..) without TABLE
        if self._tokens.at(TokenType.L_PAREN, 1) and (
            self._tokens.is_name() or self._tokens.at_words("UNNEST")
        ):
            return self._table_function()
        table = self.named_table(begin)
        # view AS OF CHECKPOINT 3
        if type(table) is exp.Table and self._versions.begins_version():
            return self._versions.version(table, begin)
        return table

    def _lateral(self, begin: int) -> exp.Expr:
        if self._tokens.at(TokenType.L_PAREN):
            self._tokens.advance()
            inner = self._context.query()
            self._tokens.need(TokenType.R_PAREN, ")")
            return self._tokens.spanned(begin, LateralQuery(this=inner))
        if not self._tokens.at(TokenType.L_PAREN, 1):
            raise self._tokens.unexpected("TABLE", "UNNEST", "a table function", "(")
        # LATERAL f(..) and LATERAL TABLE(f(..)): a table function reads preceding tables anyway
        # the binder needs to know that LATERAL was written for SNAPSHOT only
        node = self._table() if self._tokens.at_words("TABLE") else self._table_function()
        if isinstance(node, SnapshotTable):
            node.set("lateral", True)
        return node

    def lateral_view(self) -> exp.Expr | None:
        """Return the next ``LATERAL VIEW [OUTER] f(..) [t] [AS a, b]`` as a join, or ``None``."""
        begin = self._tokens.index
        if not self._tokens.take_words("LATERAL", "VIEW"):
            return None
        outer = self._tokens.take_words("OUTER")
        node = self._table_function()
        node.set("outer", outer)
        first = self._tokens.index
        # LATERAL VIEW explode(a) t AS b: a name of the table, then names of its columns, both optional
        name = (
            None
            if self._tokens.at_words("AS") or not self._tokens.is_name()
            else self._tokens.identifier("table alias")
        )
        names = (
            self._tokens.separated(lambda: self._tokens.identifier("column"))
            if self._tokens.take_words("AS")
            else []
        )
        if name is not None or names:
            # a table alias needs a name to have columns
            name = name or exp.Identifier(this="", quoted=False)
            node.set("alias", self._tokens.spanned(first, exp.TableAlias(this=name, columns=names)))
        return self._tokens.spanned(begin, exp.Join(this=node, kind="COMMA"))

    def _in_parentheses(self, begin: int) -> exp.Expr:
        self._tokens.advance()
        # (SELECT ..) is a subquery, (t AS a) a table
        if self._tokens.begins_query() or (self._tokens.at(TokenType.L_PAREN) and self._is_query()):
            inner = self._context.query()
            self._tokens.need(TokenType.R_PAREN, ")")
            return self._tokens.spanned(begin, exp.Subquery(this=inner))
        node = self.table()
        joins = []
        # (a JOIN b ON ..) JOIN c
        while (join := self.join()) is not None:
            joins.append(join)
        self._tokens.need(TokenType.R_PAREN, ")")
        if not joins:
            return node
        joined = self._tokens.spanned(begin, JoinedTables(this=node, joins=joins))
        if self._tokens.at_words("AS") or (self._tokens.is_name() and not self._begins_clause()):
            hint = "leave the alias out and write the aliases of the tables, or write (SELECT * FROM ..) AS x"
            raise self._tokens.not_yet("an alias of a join in parentheses", hint)
        return joined

    def _is_query(self) -> bool:
        """Return whether the inner parentheses at the current token are a query, not a table to be joined."""
        inside, depth = 1, 0
        while self._tokens.at(TokenType.L_PAREN, inside):
            inside += 1
        if not self._tokens.begins_query(inside):
            return False
        # ((SELECT ..) UNION ..) is a query, ((SELECT ..) AS a JOIN ..) a join
        ahead = 0
        while (token := self._tokens.token(ahead)) is not None:
            depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
            ahead += 1
            if depth == 0:
                break
        return self._tokens.at(TokenType.R_PAREN, ahead) or self._tokens.word(ahead) in _AFTER_QUERY

    def named_table(self, begin: int) -> exp.Expr:
        """Return the table named at the current token, with the options of its hint."""
        if self._tokens.at(TokenType.STRING):
            return self._with_options(self._files.path())
        if self._states.begins():
            return self._states.table(begin)
        # t, database.t or catalog.database.t
        parts = [self._tokens.identifier("table")]
        while self._tokens.take(TokenType.DOT):
            parts.append(self._tokens.identifier("table"))
        # catalog.database.table is one name here, resolved in the catalog
        name = exp.Identifier(this=".".join(part.name for part in parts), quoted=parts[0].args.get("quoted"))
        return self._with_options(self._tokens.spanned(begin, exp.Table(this=name)))

    def _with_options(self, node: exp.Expr) -> exp.Expr:
        # the hint of a table is a comment, thus between its name and the next token
        following = self._tokens.token()
        options = table_options(
            self._tokens.text,
            self._tokens.sequence[self._tokens.index - 1].end + 1,
            len(self._tokens.text) if following is None else following.start,
        )
        if options:
            node.meta["options"] = options
        return node

    def values(self) -> exp.Expr:
        """Return VALUES (..), (..)."""
        begin = self._tokens.index
        self._tokens.advance()
        return self._tokens.spanned(begin, exp.Values(expressions=self._tokens.separated(self._row)))

    def _row(self) -> exp.Expr:
        begin = self._tokens.index
        # VALUES ROW(1, 'a') is VALUES (1, 'a')
        if self._tokens.at_words("ROW") and self._tokens.at(TokenType.L_PAREN, 1):
            self._tokens.advance()
        if self._tokens.take(TokenType.L_PAREN):
            items = self._tokens.separated(self._context.scalar)
            self._tokens.need(TokenType.R_PAREN, ")")
        else:
            # VALUES 1, 2 has rows of one column
            items = [self._context.scalar()]
        return self._tokens.spanned(begin, exp.Tuple(expressions=items))

    # windowing functions

    def _table_function(self) -> exp.Expr:
        begin = self._tokens.index
        if not self._tokens.at_words("UNNEST"):
            called = self._tokens.identifier("table function")
        else:
            self._tokens.advance()
            called = self._tokens.spanned(begin, exp.Identifier(this="UNNEST", quoted=False))
        name = self._tokens.previous.text
        self._tokens.need(TokenType.L_PAREN, "(")
        # READ_CSV('path', header => FALSE)
        if name.upper() in FILE_FUNCTIONS:
            return self._with_options(self._files.call(begin, name))
        # SNAPSHOT(input => TABLE t, ..)
        if name.upper() == "SNAPSHOT":
            return self._tokens.spanned(begin, SnapshotTable(expressions=self._window_arguments()))
        if name.upper() not in WINDOW_FUNCTIONS:
            # UNNEST(a), or a Python function; the binder knows which functions exist
            return self._function_by_name(begin, name, called)
        bare = self._bare_window_arguments()
        arguments = [*bare, *self._window_arguments()]
        return self._tokens.spanned(begin, WindowTableFunction(this=name.upper(), expressions=arguments))

    def _bare_window_arguments(self) -> list[exp.Expr]:
        """Return the table and the time column of ``TUMBLE(t, ts, ..)``, as RisingWave writes them; none for
        ``TUMBLE(TABLE t, ..)``.
        """
        begin, index = self._tokens.index, 0
        while self._tokens.is_name(index) and self._tokens.at(TokenType.DOT, index + 1):
            index += 2
        named = self._tokens.is_name(index) and self._tokens.at(TokenType.COMMA, index + 1)
        if not named and not (self._tokens.at(TokenType.L_PAREN) and self._tokens.begins_query(1)):
            return []
        table = self._table_argument(begin)
        self._tokens.need(TokenType.COMMA, ",")
        if not (self._tokens.is_name() and self._tokens.at(TokenType.COMMA, 1)):
            return [table]
        begin = self._tokens.index
        column = self._tokens.spanned(begin, Descriptor(expressions=[self._tokens.identifier("column")]))
        self._tokens.need(TokenType.COMMA, ",")
        return [table, column]

    def _window_arguments(self) -> list[exp.Expr]:
        args = [] if self._tokens.at(TokenType.R_PAREN) else self._tokens.separated(self._window_argument)
        self._tokens.need(TokenType.R_PAREN, ")")
        return args

    def _function_by_name(self, begin: int, name: str, called: exp.Identifier) -> exp.Expr:
        args = self._window_arguments()
        # f(TABLE t PARTITION BY k, threshold => 5): a function over tables, or a misspelt window
        if any(isinstance(arg, TableArgument | Descriptor | NamedArgument) for arg in args):
            return self._tokens.spanned(begin, ProcessTableCall(this=called, expressions=args))
        node = TableFunctionCall(this=name, expressions=args)
        if self._tokens.take_words("WITH"):
            self._tokens.need_word("ORDINALITY")
            node.set("ordinality", True)
        return self._tokens.spanned(begin, node)

    def _window_argument(self) -> exp.Expr:
        begin = self._tokens.index
        # SIZE => INTERVAL '1' MINUTE, `SIZE` => ..
        token = self._tokens.token()
        if token and self._tokens.at(TokenType.FARROW, 1) and (self._tokens.word() or self._tokens.is_name()):
            name = token.text.upper()
            self._tokens.advance(2)
            return self._tokens.spanned(begin, NamedArgument(this=name, expression=self._window_value()))
        return self._window_value()

    def _window_value(self) -> exp.Expr:
        begin = self._tokens.index
        if self._tokens.take_words("TABLE"):
            return self._table_argument(begin)
        if self._tokens.at_words("DESCRIPTOR") and self._tokens.at(TokenType.L_PAREN, 1):
            self._tokens.advance()
            return self._tokens.spanned(begin, Descriptor(expressions=self.column_names()))
        # INTERVAL '1' MINUTE, or 100 ROWS for a window of rows
        value = self._context.scalar()
        return self._tokens.spanned(begin, RowCount(this=value)) if self._tokens.take_words("ROWS") else value

    def _table_argument(self, begin: int) -> exp.Expr:
        inner = (
            self._in_parentheses(self._tokens.index)
            if self._tokens.at(TokenType.L_PAREN)
            else self.named_table(self._tokens.index)
        )
        if isinstance(inner, JoinedTables):
            raise self._tokens.not_yet("TABLE of a join", "write TABLE (SELECT * FROM a JOIN b ON ..)", begin)
        # TABLE t PARTITION BY a, b ORDER BY c, with or without parentheses
        partition: list[exp.Identifier] = []
        if self._tokens.take_words("PARTITION"):
            self._tokens.need_word("BY")
            partition = self.column_names() if self._tokens.at(TokenType.L_PAREN) else self._bare_columns()
        order: list[exp.Expr] = []
        if self._tokens.take_words("ORDER"):
            self._tokens.need_word("BY")
            order = self._order_columns()
        return self._tokens.spanned(begin, TableArgument(this=inner, partition=partition, order=order))

    def _order_columns(self) -> list[exp.Expr]:
        """Return the columns of ORDER BY with their directions, in parentheses or without."""
        if self._tokens.take(TokenType.L_PAREN):
            columns = self._tokens.separated(self._order_column)
            self._tokens.need(TokenType.R_PAREN, ")")
            return columns
        columns = [self._order_column()]
        while self._begins_next_column():
            self._tokens.advance()
            columns.append(self._order_column())
        return columns

    def _order_column(self) -> exp.Expr:
        begin = self._tokens.index
        column = exp.Ordered(this=self._tokens.identifier("column"), desc=False)
        return self._tokens.spanned(begin, self._over.direction(column))

    def _begins_next_column(self) -> bool:
        """Return whether a comma goes on with a list of columns, and not with the next argument."""
        return (
            self._tokens.at(TokenType.COMMA)
            and self._tokens.is_name(1)
            and not self._tokens.at(TokenType.L_PAREN, 2)
            and not self._tokens.at(TokenType.FARROW, 2)
        )

    def _bare_columns(self) -> list[exp.Identifier]:
        names = [self._tokens.identifier("column")]
        # without parentheses the list ends before the next argument: PARTITION BY a, b, SIZE => ..
        while self._begins_next_column():
            self._tokens.advance()
            names.append(self._tokens.identifier("column"))
        return names

    # joins

    def join(self) -> exp.Expr | None:
        """Return the next join, or ``None``. A comma is a cross join."""
        begin = self._tokens.index
        if self._tokens.take(TokenType.COMMA):
            return self._tokens.spanned(begin, exp.Join(this=self.table(), kind="COMMA"))
        if self._tokens.at_words("ASOF") or self._tokens.at_words("LEFT", "ASOF"):
            return self._asof_join(begin)
        # CROSS APPLY (SELECT ..) is CROSS JOIN LATERAL, OUTER APPLY is LEFT JOIN LATERAL
        if self._tokens.word() in ("CROSS", "OUTER") and self._tokens.word(1) == "APPLY":
            return self._apply(begin)
        # a NATURAL LEFT JOIN b: columns of one name are the condition
        natural = self._tokens.take_words("NATURAL")
        kind = self._join_kind()
        if kind is None:
            if natural:
                raise self._tokens.unexpected("JOIN")
            return None
        if natural and kind in ("CROSS", "SEMI", "ANTI"):
            raise PenstockError(
                "SQL-1001",
                f"NATURAL does not go with {kind} JOIN",
                span=self._tokens.span_from(begin),
                hint="leave NATURAL out",
                sqlstate="42601",
            )
        table = self.table()
        node = exp.Join(this=table, kind=kind)
        # CROSS JOIN takes no condition, NATURAL has its own, every other join needs ON or USING
        if kind == "CROSS":
            if self._tokens.word() in ("ON", "USING"):
                hint = "write JOIN instead of CROSS JOIN"
                raise PenstockError(
                    "SQL-1001",
                    "CROSS JOIN takes no condition",
                    span=self._tokens.current_span(),
                    hint=hint,
                    sqlstate="42601",
                )
        elif natural:
            node.set("natural", True)
        elif self._tokens.take_words("ON"):
            node.set("on", self._context.scalar())
        elif self._tokens.take_words("USING"):
            node.set("using", self.column_names())
        # .. but LEFT JOIN UNNEST(..) and LEFT JOIN LATERAL (..) need none
        elif not isinstance(table, TableFunctionCall | LateralQuery):
            raise self._no_condition(kind)
        return self._tokens.spanned(begin, node)

    def _apply(self, begin: int) -> exp.Expr:
        kind = "CROSS" if self._tokens.word() == "CROSS" else "LEFT"
        self._tokens.advance(2)
        table = self.table()
        if isinstance(table, exp.Subquery):
            table = self._tokens.spanned(begin, LateralQuery(this=table.this, alias=table.args.get("alias")))
        return self._tokens.spanned(begin, exp.Join(this=table, kind=kind))

    def _asof_join(self, begin: int) -> exp.Expr:
        """Parse ``[LEFT] ASOF [LEFT | INNER] JOIN t [MATCH_CONDITION (..)] [ON .. | USING (..)]``."""
        left = self._tokens.take_words("LEFT")
        self._tokens.need_word("ASOF")
        if self._tokens.word() in ("RIGHT", "FULL"):
            word = self._tokens.word()
            raise self._tokens.not_yet(f"ASOF {word} JOIN", "exchange the tables and write ASOF LEFT JOIN")
        if not self._tokens.at_words("JOIN") and self._tokens.word() not in ("LEFT", "INNER"):
            raise self._tokens.unexpected("JOIN", "LEFT")
        kind = self._join_kind()
        node = exp.Join(this=self.table(), kind="LEFT" if left else kind)
        node.set("asof", True)
        if self._tokens.take_words("MATCH_CONDITION"):
            # in parentheses, or without them as in Calcite
            node.set("match_condition", self._context.scalar())
        if self._tokens.take_words("ON"):
            node.set("on", self._context.scalar())
        elif self._tokens.take_words("USING"):
            node.set("using", self.column_names())
        elif node.args.get("match_condition") is None:
            raise self._no_condition("ASOF")
        return self._tokens.spanned(begin, node)

    def _no_condition(self, kind: str) -> PenstockError:
        error = self._tokens.unexpected("ON", "USING")
        # ksqlDB: JOIN s WITHIN 1 HOURS ON ..
        if self._tokens.at_words("WITHIN"):
            error.hint = (
                "leave WITHIN out: ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '1' HOUR AND a.ts + "
                "INTERVAL '1' HOUR"
            )
        elif not error.hint:
            error.hint = f"write {kind} JOIN t ON a.key = b.key; CROSS JOIN pairs every row with every row"
        return error

    def _join_kind(self) -> str | None:
        if self._tokens.take_words("JOIN"):
            return "INNER"
        word = self._tokens.word()
        if word not in _JOIN_SIDES:
            return None
        self._tokens.advance()
        # [LEFT] SEMI | ANTI, LEFT | RIGHT | FULL [OUTER], INNER, CROSS
        if word == "RIGHT" and self._tokens.word() in ("SEMI", "ANTI"):
            raise self._tokens.not_yet(
                f"{word} {self._tokens.word()} JOIN",
                f"exchange the tables and write LEFT {self._tokens.word()} JOIN",
            )
        if word == "LEFT" and self._tokens.word() in ("SEMI", "ANTI"):
            word = self._tokens.word()
            self._tokens.advance()
        # OUTER has no meaning of its own
        if word in ("LEFT", "RIGHT", "FULL"):
            self._tokens.take_words("OUTER")
        self._tokens.need_word("JOIN")
        return word
