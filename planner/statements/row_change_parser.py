"""The grammar of statements that change rows of a table: UPDATE, DELETE and MERGE."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError, Span
from penstock.planner.parser.query_parser import QueryParser, token_stream
from penstock.planner.parser.syntax_nodes import Assignment, MergeAction, RowChange, span_of
from penstock.planner.statements.nodes import ChangeRows, Name, Query

_RETURNING = "SELECT the rows: before the statement those that it will change, after it as they are"
_NO_ALIAS = ("SET", "USING", "WHERE", "RETURNING")
_DEFAULT = "write the value: columns have no defaults, and NULL is a value"


class RowChangeParser(QueryParser):
    """Parses UPDATE, DELETE and MERGE. The kind of a ``RowChange`` is its first word."""

    def whole_change(self) -> exp.Expr:
        """Return the statement that is the whole text; raise SQL-1001 for tokens behind it."""
        begin, kind = self._tokens.index, self._tokens.word()
        self._tokens.advance()
        parts = {"UPDATE": self._update, "DELETE": self._delete, "MERGE": self._merge}[kind]()
        if self._tokens.at_words("RETURNING"):
            raise self._tokens.not_yet(f"RETURNING of {kind}", _RETURNING)
        if self._tokens.current:
            raise self._tokens.unexpected(*_followers(kind, parts))
        return self._tokens.spanned(begin, RowChange(kind=kind, **parts))

    def _update(self) -> dict[str, object]:
        target = self._target()
        self._tokens.need_word("SET")
        assignments = self._assignments()
        if self._tokens.at_words("FROM"):
            hint = (
                "write MERGE INTO t USING s ON .. WHEN MATCHED THEN UPDATE SET .., or a subquery as the value"
            )
            raise self._tokens.not_yet("UPDATE .. FROM", hint)
        return {"this": target, "assignments": assignments, "where": self._where()}

    def _delete(self) -> dict[str, object]:
        self._tokens.need_word("FROM")
        target = self._target()
        if self._tokens.at_words("USING"):
            hint = "write DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE ..), or MERGE"
            raise self._tokens.not_yet("DELETE .. USING", hint)
        return {"this": target, "where": self._where()}

    def _merge(self) -> dict[str, object]:
        self._tokens.need_word("INTO")
        target = self._target()
        self._tokens.need_word("USING")
        source = self._tables.table()
        self._tokens.need_word("ON")
        condition = self._expressions.scalar()
        actions = []
        while self._tokens.at_words("WHEN"):
            actions.append(self._action())
        if not actions:
            raise self._tokens.unexpected("WHEN")
        return {"this": target, "source": source, "on": condition, "actions": actions}

    # parts

    def _target(self) -> exp.Expr:
        """Return the table that is changed, with its alias."""
        begin = self._tokens.index
        table = self._tables.named_table(begin)
        if type(table) is not exp.Table:
            hint = "declare it by CREATE TABLE, and name that table"
            raise self._tokens.not_yet("a change of rows without a declared table", hint, begin)
        alias = self._tokens.index
        if self._tokens.word() not in _NO_ALIAS and (name := self._tables.alias("table alias")) is not None:
            table.set("alias", self._tokens.spanned(alias, exp.TableAlias(this=name)))
        return table

    def _where(self) -> exp.Expr | None:
        return self._expressions.scalar() if self._tokens.take_words("WHERE") else None

    def _assignments(self) -> list[exp.Expr]:
        return [one for some in self._tokens.separated(self._assignment) for one in some]

    def _assignment(self) -> list[exp.Expr]:
        """Return ``a = value``, or several of ``(a, b) = (value, value)``."""
        begin = self._tokens.index
        if not self._tokens.take(TokenType.L_PAREN):
            column = self._column()
            self._tokens.need(TokenType.EQ, "=")
            return [self._tokens.spanned(begin, Assignment(this=column, expression=self._value()))]
        columns = self._tokens.separated(self._column)
        self._tokens.need(TokenType.R_PAREN, ")")
        self._tokens.need(TokenType.EQ, "=")
        self._tokens.take_words("ROW")
        if self._tokens.at(TokenType.L_PAREN) and self._tokens.begins_query(1):
            hint = "write a subquery for each column: SET a = (SELECT ..), b = (SELECT ..); or MERGE"
            raise self._tokens.not_yet("a subquery of several columns in SET", hint)
        values = self._values()
        if len(values) != len(columns):
            raise PenstockError(
                "SQL-1090",
                f"{len(columns)} column{'s' if len(columns) != 1 else ''} and {len(values)} value"
                f"{'s' if len(values) != 1 else ''} in SET",
                span=self._tokens.span_from(begin),
                hint="write a value for each column",
                sqlstate="42601",
            )
        return [
            self._tokens.spanned(begin, Assignment(this=column, expression=value))
            for column, value in zip(columns, values, strict=True)
        ]

    def _column(self) -> exp.Expr:
        """Return the identifier of a column, written as ``a`` or ``t.a``."""
        name = self._tokens.identifier("column")
        while self._tokens.take(TokenType.DOT):
            name = self._tokens.identifier("column")
        return name

    def _value(self) -> exp.Expr:
        if self._tokens.at_words("DEFAULT"):
            raise self._tokens.not_yet("DEFAULT", _DEFAULT)
        return self._expressions.scalar()

    def _values(self) -> list[exp.Expr]:
        self._tokens.need(TokenType.L_PAREN, "(")
        values = self._tokens.separated(self._value)
        self._tokens.need(TokenType.R_PAREN, ")")
        return values

    # MERGE

    def _action(self) -> exp.Expr:
        begin = self._tokens.index
        self._tokens.advance()
        missing = self._tokens.take_words("NOT")
        self._tokens.need_word("MATCHED")
        by_source = missing and self._tokens.take_words("BY", "SOURCE")
        if missing and not by_source:
            self._tokens.take_words("BY", "TARGET")
        condition = self._expressions.scalar() if self._tokens.take_words("AND") else None
        self._tokens.need_word("THEN")
        inserts = missing and not by_source
        act = self._insert if inserts else self._change_of_row
        matched = "source" if by_source else "target" if missing else "both"
        return self._tokens.spanned(begin, act(matched, condition))

    def _change_of_row(self, matched: str, condition: exp.Expr | None) -> exp.Expr:
        if self._does_nothing():
            return MergeAction(matched=matched, condition=condition, kind="NOTHING")
        if self._tokens.take_words("DELETE"):
            return MergeAction(matched=matched, condition=condition, kind="DELETE")
        if not self._tokens.take_words("UPDATE"):
            raise self._tokens.unexpected("UPDATE", "DELETE", "DO NOTHING")
        self._tokens.need_word("SET")
        every = self._tokens.take(TokenType.STAR)
        assignments = [] if every else self._assignments()
        return MergeAction(
            matched=matched, condition=condition, kind="UPDATE", every=every, assignments=assignments
        )

    def _insert(self, matched: str, condition: exp.Expr | None) -> exp.Expr:
        if self._does_nothing():
            return MergeAction(matched=matched, condition=condition, kind="NOTHING")
        if not self._tokens.take_words("INSERT"):
            raise self._tokens.unexpected("INSERT", "DO NOTHING")
        if self._tokens.take(TokenType.STAR):
            return MergeAction(matched=matched, condition=condition, kind="INSERT", every=True)
        columns = []
        if self._tokens.take(TokenType.L_PAREN):
            columns = self._tokens.separated(self._column)
            self._tokens.need(TokenType.R_PAREN, ")")
        begin = self._tokens.index
        self._tokens.need_word("VALUES")
        values = self._tokens.spanned(begin, exp.Tuple(expressions=self._values()))
        return MergeAction(
            matched=matched, condition=condition, kind="INSERT", columns=columns, values=values
        )

    def _does_nothing(self) -> bool:
        return self._tokens.take_words("DO", "NOTHING")


def _followers(kind: str, parts: dict[str, object]) -> tuple[str, ...]:
    if kind == "MERGE":
        return ("WHEN",)
    return ("the end of the statement",) if parts["where"] is not None else ("WHERE",)


def parse_row_change(text: str, start: int, end: int) -> ChangeRows:
    """Return the UPDATE, DELETE or MERGE from ``start`` to ``end`` of a text. Raise SQL-10xx with a span into
    ``text``.
    """
    tree = RowChangeParser(token_stream(text[:end], start)).whole_change()
    span, name = Span(start, end), span_of(tree.this)
    assert name is not None, "the parser has set the spans of tables"
    query = Query(text[start:end], tree, span=span)
    return ChangeRows(Name(tree.this.name, name), query, overwrite=True, span=span)
