"""The grammar of FROM: tables, subqueries, VALUES, windowing functions, joins and aliases."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean, nearest
from penstock.planner.logical.windows import WINDOW_FUNCTIONS, window_functions_text
from penstock.planner.parser.hints import table_options
from penstock.planner.parser.match_recognize_parser import MatchParser
from penstock.planner.parser.syntax_nodes import (
    AsOf,
    Descriptor,
    LateralQuery,
    NamedArgument,
    RowCount,
    SnapshotTable,
    TableArgument,
    TableFunctionCall,
    WindowTableFunction,
)

_FILE_ENDINGS = (".csv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow")
# words that begin a clause before one of these followers, or anywhere if none are listed
_NO_ALIAS = {
    "ASOF": ("JOIN", "LEFT", "INNER"),
    "EMIT": ("ON", "CHANGES", "FINAL", "WITH"),
    "LATE": ("ROWS",),
    "MINUS": ("SELECT", "ALL"),
    "TABLESAMPLE": (),
    "PIVOT": (),
    "UNPIVOT": (),
}
_JOIN_SIDES = ("LEFT", "RIGHT", "FULL", "INNER", "CROSS")


class TableParser(MatchParser):
    """Parses the FROM clause."""

    # aliases

    def alias(self, what: str) -> exp.Identifier | None:
        """Return the alias at the current token, with or without AS, or ``None``."""
        if self.take_words("AS"):
            if self.at(TokenType.STRING):
                hint = f"quote names with backticks: `{self._curr.text}`"
                raise PenstockError(
                    "SQL-1001",
                    f"a string cannot be a {what}",
                    span=self.current_span(),
                    hint=hint,
                    sqlstate="42601",
                )
            return self.identifier(what)
        if not self.is_name() or self._begins_clause():
            return None
        token = self._curr
        # a bare alias may be a misspelt keyword: an error behind it asks "did you mean .."
        if token.token_type is TokenType.VAR:
            self.implicit_alias = token
        return self.identifier(what)

    def _begins_clause(self) -> bool:
        followers = _NO_ALIAS.get(self.word())
        return followers is not None and (not followers or self.word(1) in followers)

    def column_names(self) -> list[exp.Identifier]:
        """Return the names of ``(a, b, ..)``."""
        self.need(TokenType.L_PAREN, "(")
        names = self.separated(lambda: self.identifier("column"))
        self.need(TokenType.R_PAREN, ")")
        return names

    def _table_alias(self, node: exp.Expr) -> exp.Expr:
        # FOR SYSTEM_TIME AS OF is allowed on either side of the alias
        first = begin = self._index
        time = self._as_of()
        if time is not None:
            begin = self._index
        if self.at_words("TABLESAMPLE"):
            raise self.not_yet("TABLESAMPLE", "filter with WHERE")
        if self.word() in ("PIVOT", "UNPIVOT"):
            raise self.not_yet(self.word(), "write CASE expressions")
        name = self.alias("table alias")
        if name is not None:
            self._refuse_misspelt_side(name)
            columns = self.column_names() if self.at(TokenType.L_PAREN) else []
            node.set("alias", self.spanned(begin, exp.TableAlias(this=name, columns=columns)))
        time = time or self._as_of()
        return node if time is None else self._at_time(node, time, first)

    def _at_time(self, node: exp.Expr, time: exp.Expr, begin: int) -> exp.Expr:
        if not isinstance(node, TableFunctionCall | LateralQuery):
            return self.spanned(begin, AsOf(this=node, expression=time))
        hint = "join a table, a view or a subquery in parentheses"
        message = "FOR SYSTEM_TIME AS OF does not go with LATERAL or a table function"
        raise PenstockError("SQL-1721", message, span=self.span_from(begin), hint=hint, sqlstate="0A000")

    def _as_of(self) -> exp.Expr | None:
        """Return the time of FOR SYSTEM_TIME AS OF, which may precede or follow the alias, or ``None``."""
        if not self.take_words("FOR"):
            return None
        for word in ("SYSTEM_TIME", "AS", "OF"):
            self.need_word(word)
        return self.scalar()

    def _refuse_misspelt_side(self, name: exp.Identifier) -> None:
        # FROM a LEFFT JOIN b reads LEFFT as an alias of a
        if self.implicit_alias is not self.token(-1) or not (
            self.at_words("JOIN") or self.at_words("OUTER", "JOIN")
        ):
            return
        meant = nearest(name.name, _JOIN_SIDES)
        if meant is not None:
            span = self.span_from(self._index - 1)
            hint = f'did you mean "{meant}"? write AS {name.name} if it is the table\'s alias'
            raise PenstockError(
                "SQL-1001", f'unexpected "{name.name}" before JOIN', span=span, hint=hint, sqlstate="42601"
            )

    # tables

    def table(self) -> exp.Expr:
        """Return one table reference with its alias and its MATCH_RECOGNIZE clauses."""
        # t MATCH_RECOGNIZE (..) a MATCH_RECOGNIZE (..) b
        node = self._table_alias(self._table())
        while self.at_words("MATCH_RECOGNIZE"):
            node = self._table_alias(self.match_recognize(node))
        return node

    def _table(self) -> exp.Expr:
        begin = self._index
        # LATERAL (SELECT ..)
        if self.at(TokenType.L_PAREN):
            return self._in_parentheses(begin)
        if self.at_words("VALUES"):
            return self.values()
        if self.take_words("LATERAL"):
            return self._lateral(begin)
        # TABLE(f(..))
        if self.at_words("TABLE") and self.at(TokenType.L_PAREN, 1):
            self._advance(2)
            node = self._table_function()
            self.need(TokenType.R_PAREN, ")")
            return node
        # f(..) without TABLE
        if self.at(TokenType.L_PAREN, 1) and (self.is_name() or self.at_words("UNNEST")):
            return self._table_function()
        return self.named_table(begin)

    def _lateral(self, begin: int) -> exp.Expr:
        if self.at(TokenType.L_PAREN):
            self._advance()
            inner = self.query()
            self.need(TokenType.R_PAREN, ")")
            return self.spanned(begin, LateralQuery(this=inner))
        if not self.at(TokenType.L_PAREN, 1):
            raise self.unexpected("TABLE", "UNNEST", "a table function", "(")
        # LATERAL f(..) and LATERAL TABLE(f(..)): a table function reads preceding tables anyway
        node = self._table() if self.at_words("TABLE") else self._table_function()
        if isinstance(node, SnapshotTable):
            node.set("lateral", True)
        return node

    def lateral_view(self) -> exp.Expr | None:
        """Return the next ``LATERAL VIEW [OUTER] f(..) [t] [AS a, b]`` as a join, or ``None``."""
        begin = self._index
        if not self.take_words("LATERAL", "VIEW"):
            return None
        outer = self.take_words("OUTER")
        node = self._table_function()
        node.set("outer", outer)
        first = self._index
        name = None if self.at_words("AS") or not self.is_name() else self.identifier("table alias")
        names = self.separated(lambda: self.identifier("column")) if self.take_words("AS") else []
        if name is not None or names:
            name = name or exp.Identifier(this="", quoted=False)
            node.set("alias", self.spanned(first, exp.TableAlias(this=name, columns=names)))
        return self.spanned(begin, exp.Join(this=node, kind="COMMA"))

    def _in_parentheses(self, begin: int) -> exp.Expr:
        self._advance()
        # (SELECT ..) is a subquery, (t AS a) a table
        if self.at(TokenType.L_PAREN) or self.begins_query():
            inner = self.query()
            self.need(TokenType.R_PAREN, ")")
            return self.spanned(begin, exp.Subquery(this=inner))
        node = self.table()
        if self.word() in ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL"):
            raise self.not_yet(
                "a join in parentheses", "write the joins one after the other, or put them in a subquery"
            )
        self.need(TokenType.R_PAREN, ")")
        return node

    def named_table(self, begin: int) -> exp.Expr:
        """Return the table named at the current token, with the options of its hint."""
        if self.at(TokenType.STRING):
            raise PenstockError(
                "SQL-1001",
                "a string cannot be a table",
                span=self.current_span(),
                hint=_instead_of(self._curr.text),
                sqlstate="42601",
            )
        parts = [self.identifier("table")]
        while self.take(TokenType.DOT):
            parts.append(self.identifier("table"))
        # catalog.database.table is one name here, resolved in the catalog
        name = exp.Identifier(this=".".join(part.name for part in parts), quoted=parts[0].args.get("quoted"))
        node = self.spanned(begin, exp.Table(this=name))
        # the hint of a table is a comment, thus between its name and the next token
        following = self.token()
        options = table_options(
            self.sql,
            self._tokens[self._index - 1].end + 1,
            len(self.sql) if following is None else following.start,
        )
        if options:
            node.meta["options"] = options
        return node

    def values(self) -> exp.Expr:
        """Return VALUES (..), (..)."""
        begin = self._index
        self._advance()
        return self.spanned(begin, exp.Values(expressions=self.separated(self._row)))

    def _row(self) -> exp.Expr:
        begin = self._index
        if self.take(TokenType.L_PAREN):
            items = self.separated(self.scalar)
            self.need(TokenType.R_PAREN, ")")
        else:
            items = [self.scalar()]
        return self.spanned(begin, exp.Tuple(expressions=items))

    # windowing functions

    def _table_function(self) -> exp.Expr:
        begin = self._index
        if not self.at_words("UNNEST"):
            self.identifier("table function")
        else:
            self._advance()
        name = self._prev.text
        span = self.span_from(begin)
        self.need(TokenType.L_PAREN, "(")
        # arguments of a windowing function, by which a misspelt one is recognised
        windows = self.word() in ("TABLE", "DESCRIPTOR") or self.at(TokenType.FARROW, 1)
        if name.upper() == "SNAPSHOT":
            return self.spanned(begin, SnapshotTable(expressions=self._window_arguments()))
        if name.upper() not in WINDOW_FUNCTIONS and windows:
            hint = (
                did_you_mean(name.upper(), (*WINDOW_FUNCTIONS, "SNAPSHOT"))
                or f"the table functions are {window_functions_text('and')}"
            )
            raise PenstockError(
                "SQL-1101", f'table function "{name}" does not exist', span=span, hint=hint, sqlstate="42883"
            )
        if name.upper() not in WINDOW_FUNCTIONS:
            return self._function_of_values(begin, name)
        return self.spanned(
            begin, WindowTableFunction(this=name.upper(), expressions=self._window_arguments())
        )

    def _window_arguments(self) -> list[exp.Expr]:
        args = [] if self.at(TokenType.R_PAREN) else self.separated(self._window_argument)
        self.need(TokenType.R_PAREN, ")")
        return args

    def _function_of_values(self, begin: int, name: str) -> exp.Expr:
        args = [] if self.at(TokenType.R_PAREN) else self.separated(self.scalar)
        self.need(TokenType.R_PAREN, ")")
        node = TableFunctionCall(this=name, expressions=args)
        if self.take_words("WITH"):
            self.need_word("ORDINALITY")
            node.set("ordinality", True)
        return self.spanned(begin, node)

    def _window_argument(self) -> exp.Expr:
        begin = self._index
        # SIZE => INTERVAL '1' MINUTE
        if self.word() and self.at(TokenType.FARROW, 1):
            name = self.word()
            self._advance(2)
            return self.spanned(begin, NamedArgument(this=name, expression=self._window_value()))
        return self._window_value()

    def _window_value(self) -> exp.Expr:
        begin = self._index
        if self.take_words("TABLE"):
            return self._table_argument(begin)
        if self.at_words("DESCRIPTOR") and self.at(TokenType.L_PAREN, 1):
            self._advance()
            return self.spanned(begin, Descriptor(expressions=self.column_names()))
        value = self.scalar()
        return self.spanned(begin, RowCount(this=value)) if self.take_words("ROWS") else value

    def _table_argument(self, begin: int) -> exp.Expr:
        inner = (
            self._in_parentheses(self._index) if self.at(TokenType.L_PAREN) else self.named_table(self._index)
        )
        partition: list[exp.Identifier] = []
        if self.take_words("PARTITION"):
            self.need_word("BY")
            partition = self.column_names() if self.at(TokenType.L_PAREN) else self._bare_columns()
        order: list[exp.Identifier] = []
        if self.take_words("ORDER"):
            self.need_word("BY")
            order = self.column_names() if self.at(TokenType.L_PAREN) else self._bare_columns()
        return self.spanned(begin, TableArgument(this=inner, partition=partition, order=order))

    def _bare_columns(self) -> list[exp.Identifier]:
        names = [self.identifier("column")]
        # without parentheses the list ends before the next argument: PARTITION BY a, b, SIZE => ..
        while (
            self.at(TokenType.COMMA)
            and self.is_name(1)
            and not self.at(TokenType.L_PAREN, 2)
            and not self.at(TokenType.FARROW, 2)
        ):
            self._advance()
            names.append(self.identifier("column"))
        return names

    # joins

    def join(self) -> exp.Expr | None:
        """Return the next join, or ``None``. A comma is a cross join."""
        begin = self._index
        if self.take(TokenType.COMMA):
            return self.spanned(begin, exp.Join(this=self.table(), kind="COMMA"))
        if self.word() == "ASOF":
            raise self.not_yet(
                "ASOF JOIN",
                "write JOIN t FOR SYSTEM_TIME AS OF a time attribute, t with a PRIMARY KEY and a WATERMARK",
            )
        natural = self.take_words("NATURAL")
        kind = self._join_kind()
        if kind is None:
            if natural:
                raise self.unexpected("JOIN")
            return None
        if natural and kind in ("CROSS", "SEMI", "ANTI"):
            raise PenstockError(
                "SQL-1001",
                f"NATURAL does not go with {kind} JOIN",
                span=self.span_from(begin),
                hint="leave NATURAL out",
                sqlstate="42601",
            )
        table = self.table()
        node = exp.Join(this=table, kind=kind)
        # CROSS JOIN takes no condition, NATURAL has its own, every other join needs ON or USING
        if kind == "CROSS":
            if self.word() in ("ON", "USING"):
                hint = "write JOIN instead of CROSS JOIN"
                raise PenstockError(
                    "SQL-1001",
                    "CROSS JOIN takes no condition",
                    span=self.current_span(),
                    hint=hint,
                    sqlstate="42601",
                )
        elif natural:
            node.set("natural", True)
        elif self.take_words("ON"):
            node.set("on", self.scalar())
        elif self.take_words("USING"):
            node.set("using", self.column_names())
        # .. but LEFT JOIN UNNEST(..) and LEFT JOIN LATERAL (..) need none
        elif not isinstance(table, TableFunctionCall | LateralQuery):
            raise self._no_condition(kind)
        return self.spanned(begin, node)

    def _no_condition(self, kind: str) -> PenstockError:
        error = self.unexpected("ON", "USING")
        if not error.hint:
            error.hint = f"{kind} JOIN needs a condition; CROSS JOIN pairs every row with every row"
        return error

    def _join_kind(self) -> str | None:
        if self.take_words("JOIN"):
            return "INNER"
        word = self.word()
        if word not in _JOIN_SIDES:
            return None
        self._advance()
        # [LEFT] SEMI | ANTI, LEFT | RIGHT | FULL [OUTER], INNER, CROSS
        if word == "RIGHT" and self.word() in ("SEMI", "ANTI"):
            raise self.not_yet(
                f"{word} {self.word()} JOIN", f"exchange the tables and write LEFT {self.word()} JOIN"
            )
        if word == "LEFT" and self.word() in ("SEMI", "ANTI"):
            word = self.word()
            self._advance()
        if word in ("LEFT", "RIGHT", "FULL"):
            self.take_words("OUTER")
        self.need_word("JOIN")
        return word


def _instead_of(text: str) -> str:
    """Return the hint for a string in place of a table: a name goes without single quotes, a file needs
    CREATE TABLE.
    """
    if re.fullmatch(r"\w+(\.\w+){0,2}", text) and "." + text.rpartition(".")[2].lower() not in _FILE_ENDINGS:
        return f"a table's name stands without quotes: {text}"
    path = text[:60].replace("'", "''")
    kind = next((ending[1:] for ending in _FILE_ENDINGS if ending in text.lower()), "csv")
    kind = {"jsonl": "json", "ndjson": "json"}.get(kind, kind)
    return (
        "a file is declared first: CREATE TABLE t (..) WITH ('connector' = 'filesystem', 'path' = "
        f"'{path}', 'format' = '{kind}')"
    )
