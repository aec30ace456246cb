"""The grammar of queries: WITH, SELECT, VALUES, UNION and what follows them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.planner.parser.clause_parser import EmitParser
from penstock.planner.parser.hints import select_hints
from penstock.planner.parser.keywords import CLAUSES
from penstock.planner.parser.named_windows import with_windows
from penstock.planner.parser.scanner import MAX_DEPTH
from penstock.planner.parser.syntax_nodes import AllColumns, OverClause, span_of

_SET_NODES = {"UNION": exp.Union, "EXCEPT": exp.Except, "MINUS": exp.Except, "INTERSECT": exp.Intersect}
_SET_WORDS = tuple(_SET_NODES)
_AFTER_SELECT = {
    "CLUSTER": "leave it out: rows of one key meet by themselves",
    "DISTRIBUTE": "leave it out: rows of one key meet by themselves",
    "SORT": "use ORDER BY",
}


class QueryParser(EmitParser):
    """Queries."""

    def whole_query(self) -> exp.Expr:
        """Return the query that fills the text to its end."""
        node = self.query()
        if self._curr:
            raise self.unexpected(*CLAUSES)
        return node

    def whole_expression(self) -> exp.Expr:
        """Return the scalar expression that fills the text to its end."""
        node = self.scalar()
        if self._curr:
            raise self.unexpected("the end of the expression")
        return node

    def whole_item(self) -> exp.Expr:
        """Return the select item that fills the text to its end."""
        node = self._item()
        if self._curr:
            raise self.unexpected("the end of the expression")
        return node

    def whole_sort_item(self) -> exp.Expr:
        """Return the ORDER BY item that fills the text to its end."""
        node = self.sort_item()
        if self._curr:
            raise self.unexpected("ASC", "DESC", "NULLS")
        return node

    def query(self) -> exp.Expr:
        """Return a query with its WITH clause before and ORDER BY, LIMIT and OFFSET after it."""
        self.enter()
        begin = self._index
        tables = self._with() if self.at_words("WITH") else None
        node = self._set_operations(begin)
        if tables is not None:
            node.set("with_", tables)
        self._modifiers(node)
        self.leave()
        return node

    def _with(self) -> exp.Expr:
        begin = self._index
        self._advance()
        if self.at_words("RECURSIVE"):
            raise self.not_yet("WITH RECURSIVE", "write the steps out, or compute the closure outside")
        return self.placed(begin, exp.With(expressions=self.separated(self._common_table)))

    def _common_table(self) -> exp.Expr:
        begin = self._index
        name = self.identifier("name for a WITH table")
        columns = (
            self.column_names()
            if self.at(TokenType.L_PAREN) and self.word(1) not in ("SELECT", "WITH", "VALUES")
            else []
        )
        self.need_word("AS")
        self.need(TokenType.L_PAREN, "(")
        body = self.query()
        self.need(TokenType.R_PAREN, ")")
        return self.placed(begin, exp.CTE(this=body, alias=exp.TableAlias(this=name, columns=columns)))

    def _set_operations(self, begin: int) -> exp.Expr:
        return self._chained(begin, ("UNION", "EXCEPT", "MINUS"), self._intersections)

    def _intersections(self) -> exp.Expr:
        return self._chained(self._index, ("INTERSECT",), self._term)

    def _chained(self, begin: int, words: tuple[str, ...], operand: Callable[[], exp.Expr]) -> exp.Expr:
        node = operand()
        steps = 0
        while (word := self.word()) in words:
            steps += 1
            if steps > 1000:
                raise PenstockError(
                    "SQL-1007",
                    f"more than 1,000 {word} branches are over the limit",
                    span=self.here(),
                    sqlstate="54001",
                )
            self._advance()
            distinct = not self.take_words("ALL")
            if distinct:
                self.take_words("DISTINCT")
            node = self.placed(begin, _SET_NODES[word](this=node, expression=operand(), distinct=distinct))
        return node

    def _term(self) -> exp.Expr:
        begin = self._index
        if self.at_words("SELECT"):
            return self._select(begin)
        if self.at_words("VALUES"):
            return self.values()
        if self.take(TokenType.L_PAREN):
            inner = self.query()
            self.need(TokenType.R_PAREN, ")")
            return self.placed(begin, exp.Subquery(this=inner))
        if self.at_words("TABLE") and self.is_name(1):
            return self._whole_table(begin)
        if self.at_words("FROM"):
            hint = "begin with SELECT * FROM .."
            raise PenstockError(
                "SQL-1001",
                "a query begins with SELECT, not with FROM",
                span=self.here(),
                hint=hint,
                sqlstate="42601",
            )
        raise self.unexpected("SELECT", "VALUES", "WITH")

    def _whole_table(self, begin: int) -> exp.Expr:
        """``TABLE t``: SELECT * FROM t."""
        self._advance()
        table = self.named_table(self._index)
        every = self.placed(begin, AllColumns(this=None, except_=[]))
        return self.placed(begin, exp.Select(expressions=[every], from_=exp.From(this=table), joins=[]))

    # select

    def _select(self, begin: int) -> exp.Expr:
        self._advance()
        hints = select_hints(
            self.sql, self._prev.end + 1, len(self.sql) if self._curr is None else self._curr.start
        )
        distinct = self.take_words("DISTINCT")
        if distinct and self.at_words("ON"):
            raise self.not_yet("DISTINCT ON", "use GROUP BY with any_value, min or max")
        if not distinct:
            self.take_words("ALL")
        node = exp.Select(
            expressions=self.separated(self._item), distinct=exp.Distinct() if distinct else None
        )
        if hints:
            node.meta["hints"] = hints
        if self.take_words("FROM"):
            self._from(node)
        if self.take_words("WHERE"):
            node.set("where", self.scalar())
        if self.at_words("GROUP"):
            node.set("group", self._group())
        if self.take_words("HAVING"):
            node.set("having", self.scalar())
        windows = self._windows()
        if self.take_words("QUALIFY"):
            node.set("qualify", self.scalar())
        windows |= self._windows()
        with_windows(node, windows)
        if self.word() in _AFTER_SELECT:
            raise self.not_yet(self.word(), _AFTER_SELECT[self.word()])
        return self.placed(begin, node)

    def _windows(self) -> dict[str, OverClause]:
        """Return the windows of a WINDOW clause by their names in lower case."""
        found: dict[str, OverClause] = {}
        if not self.take_words("WINDOW"):
            return found
        for name, window in self.separated(self._named_window):
            if name.name.lower() in found:
                raise PenstockError(
                    "SQL-1045",
                    f'the window "{name.name}" is given twice',
                    span=span_of(name),
                    sqlstate="42712",
                )
            found[name.name.lower()] = window
        return found

    def _named_window(self) -> tuple[exp.Identifier, OverClause]:
        name = self.identifier("window")
        self.need_word("AS")
        return name, self.window(self._index)

    def _item(self) -> exp.Expr:
        star = self.star()
        if star is not None:
            return star
        if self.at_words("FROM"):
            hint = 'a column named "from" must be quoted: `from`'
            raise PenstockError(
                "SQL-1001",
                "an expression is missing before FROM",
                span=self.here(),
                hint=hint,
                sqlstate="42601",
            )
        begin = self._index
        node = self.scalar()
        alias = self.alias("column alias")
        return node if alias is None else self.placed(begin, exp.Alias(this=node, alias=alias))

    def _from(self, node: exp.Select) -> None:
        node.set("from_", exp.From(this=self.table()))
        joins = []
        begin = self._index
        while (join := self.join() or self.lateral_view()) is not None:
            joins.append(join)
            if len(joins) > MAX_DEPTH:
                message = f"FROM with more than {MAX_DEPTH} joins is over the limit"
                hint = "join some of them in a WITH clause or a view"
                raise PenstockError(
                    "SQL-1007", message, span=self.place_of(begin), hint=hint, sqlstate="54001"
                )
            begin = self._index
        node.set("joins", joins)

    def _group(self) -> exp.Expr:
        begin = self._index
        self._advance()
        self.need_word("BY")
        if self.at_words("ALL"):
            raise self.not_yet("GROUP BY ALL", "name the columns")
        return self.placed(begin, self.groups())

    # after the query

    def _modifiers(self, node: exp.Expr) -> None:
        if self.at_words("ORDER"):
            node.set("order", self._order())
        while self.word() in ("LIMIT", "OFFSET", "FETCH"):
            word = self.word()
            key = "offset" if word == "OFFSET" else "limit"
            if node.args.get(key) is not None:
                raise PenstockError(
                    "SQL-1001", f"{key.upper()} is given twice", span=self.here(), sqlstate="42601"
                )
            node.set(key, self._count_of_rows(word))
        if self.at_words("EMIT"):
            node.set("emit", self.emit())
        if self.at_words("LATE", "ROWS"):
            node.set("late_rows", self.late_rows())
        if self.at_words("WITH", "HISTORY"):
            node.set("history", self.history())
        if self.word() in _SET_WORDS:
            raise self.not_yet(f"ORDER BY or LIMIT before {self.word()}", "put the branch in parentheses")

    def _order(self) -> exp.Expr:
        begin = self._index
        self._advance()
        self.need_word("BY")
        return self.placed(begin, exp.Order(expressions=self.separated(self.sort_item)))

    def sort_item(self) -> exp.Expr:
        """Return one item of an ORDER BY."""
        begin = self._index
        node = exp.Ordered(this=self.scalar(), desc=False)
        if self.take_words("DESC"):
            node.set("desc", True)
        else:
            self.take_words("ASC")
        if self.take_words("NULLS"):
            if self.word() not in ("FIRST", "LAST"):
                raise self.unexpected("FIRST", "LAST")
            node.set("nulls_first", self.word() == "FIRST")
            self._advance()
        else:
            node.set("nulls_first", not node.args["desc"])
        return self.placed(begin, node)

    def _count_of_rows(self, word: str) -> exp.Expr:
        self._advance()
        if word == "FETCH":
            if not (self.take_words("FIRST") or self.take_words("NEXT")):
                raise self.unexpected("FIRST", "NEXT")
            count: exp.Expr = exp.Literal.number("1") if self.word() in ("ROW", "ROWS") else self._row_count()
            if not (self.take_words("ROWS") or self.take_words("ROW")):
                raise self.unexpected("ROWS")
            self.need_word("ONLY")
            return count
        count = self._row_count()
        if word == "LIMIT" and self.at(TokenType.COMMA):
            raise self.not_yet("LIMIT offset, count", "write LIMIT count OFFSET offset")
        if word == "OFFSET":
            self.take_words("ROWS") or self.take_words("ROW")
        return count

    def _row_count(self) -> exp.Expr:
        place = self.here()
        node = self.literal()
        if (
            node is None
            or not isinstance(node, exp.Literal | exp.Placeholder)
            or (isinstance(node, exp.Literal) and not node.name.isdigit())
        ):
            raise PenstockError(
                "SQL-1012", "a number of rows is a whole number such as 10", span=place, sqlstate="2201W"
            )
        return node
