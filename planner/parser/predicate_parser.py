"""The grammar of predicates: BETWEEN, IN, LIKE and its variants, IS, and comparisons with ANY or ALL."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.planner.parser.literal_parser import LiteralParser
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    AnyOf,
    FunctionCall,
    Reference,
    balanced,
    set_span,
)

TESTS = ("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "SIMILAR", "OVERLAPS")
"""Words that begin a predicate, with or without NOT before them."""

_QUANTIFIERS = ("ANY", "SOME", "ALL")
_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("equal", "not_equal"),
    exp.NEQ: ("not_equal", "equal"),
    exp.LT: ("less", "greater_equal"),
    exp.LTE: ("less_equal", "greater"),
    exp.GT: ("greater", "less_equal"),
    exp.GTE: ("greater_equal", "less"),
}
"""The function of each comparison, and of its negation."""
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_JSON_KINDS = ("VALUE", "OBJECT", "ARRAY", "SCALAR")


class PredicateParser:
    """Parses the predicate that follows a value."""

    def __init__(self, context: ParserContext, literals: LiteralParser) -> None:
        self._context, self._tokens = context, context.tokens
        self._literals = literals

    def test(self, word: str, left: exp.Expr, negated: bool) -> exp.Expr:
        """Return the predicate whose first word has been consumed, wrapped in NOT when ``negated``."""
        # LIKE ANY ('a%', 'b%')
        if (
            word in ("LIKE", "ILIKE")
            and self._tokens.word() in ("ANY", "SOME", "ALL")
            and self._tokens.at(TokenType.L_PAREN, 1)
        ):
            return self._one_of_patterns(exp.ILike if word == "ILIKE" else exp.Like, left, negated)
        node = self._is(left) if word == "IS" else self._plain(word, left)
        return exp.Not(this=self._spanned_from(left, node)) if negated else node

    def _plain(self, word: str, left: exp.Expr) -> exp.Expr:
        # [SYMMETRIC | ASYMMETRIC] low AND high
        if word == "BETWEEN":
            symmetric = self._tokens.take_words("SYMMETRIC")
            if not symmetric:
                self._tokens.take_words("ASYMMETRIC")
            low = self._context.operand()
            self._tokens.need_word("AND")
            return exp.Between(this=left, low=low, high=self._context.operand(), symmetric=symmetric)
        if word == "IN":
            return self._in(left)
        # (a, b) OVERLAPS (c, d)
        if word == "OVERLAPS":
            return exp.Overlaps(this=left, expression=self._context.operand())
        # every other predicate has one pattern: SIMILAR TO, RLIKE, REGEXP, LIKE, ILIKE
        if word == "SIMILAR":
            self._tokens.need_word("TO")
        pattern = self._context.operand()
        if word in ("RLIKE", "REGEXP"):
            return exp.RegexpLike(this=left, expression=pattern)
        kind = {"ILIKE": exp.ILike, "LIKE": exp.Like}.get(word, exp.SimilarTo)
        node: exp.Expr = kind(this=left, expression=pattern)
        return (
            exp.Escape(this=node, expression=self._literals.string("an escape character"))
            if self._tokens.take_words("ESCAPE")
            else node
        )

    def _one_of_patterns(self, kind: type[exp.Expr], left: exp.Expr, negated: bool) -> exp.Expr:
        """Expand ``x LIKE ANY (a, b)`` into one LIKE for each pattern. NOT applies to each of them."""
        connective = exp.And if self._tokens.word() == "ALL" else exp.Or
        self._tokens.advance(2)
        tests = []
        for pattern in self._tokens.separated(self._context.scalar):
            self._tokens.count_operator()
            test = self._spanned_from(left, kind(this=left.copy(), expression=pattern))
            tests.append(self._spanned_from(left, exp.Not(this=test)) if negated else test)
        self._tokens.need(TokenType.R_PAREN, ")")
        return balanced(connective, tests)

    def _in(self, left: exp.Expr) -> exp.Expr:
        # IN (SELECT ..), else IN (a, b, ..)
        if self._tokens.at(TokenType.L_PAREN) and self._tokens.begins_query(1):
            return exp.In(this=left, query=self.subquery())
        self._tokens.need(TokenType.L_PAREN, "(")
        items = self._tokens.separated(self._context.scalar)
        self._tokens.need(TokenType.R_PAREN, ")")
        return exp.In(this=left, expressions=items)

    def quantified(self, kind: type[exp.Expr], left: exp.Expr) -> exp.Expr | None:
        """Return the predicate for ``x = ANY (query)``, ``x < ALL (a, b)`` and so on. The comparison sign has
        been consumed. Return ``None`` when no quantifier follows.
        """
        word, inside = self._tokens.word(), 2
        if word not in _QUANTIFIERS or kind not in _COMPARISONS or not self._tokens.at(TokenType.L_PAREN, 1):
            return None
        # = ANY ((SELECT ..)) is a query as well
        while self._tokens.at(TokenType.L_PAREN, inside):
            inside += 1
        every, is_query = word == "ALL", self._tokens.begins_query(inside)
        # the aggregate of that name
        if not is_query and not every and not self._holds_comma():
            return None
        self._tokens.advance()
        if not is_query:
            return self._quantified_list(kind, left, every)
        function, opposite = _COMPARISONS[kind]
        # x < ALL (q) is NOT x >= ANY (q)
        function = opposite if every else function
        query = self.subquery()
        found: exp.Expr = exp.In(this=left, query=query)
        if function != "equal":
            found = AnyOf(this=left, query=query, function=function)
        found = self._spanned_from(left, found)
        return exp.Not(this=found) if every else found

    def _holds_comma(self) -> bool:
        """Return whether the parentheses behind the current word list several items. No aggregate called ANY,
        SOME or ALL takes several.
        """
        depth, ahead = 0, 1
        while (token := self._tokens.token(ahead)) is not None:
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if depth == 0:
                return False
            if depth == 1 and token.token_type is TokenType.COMMA:
                return True
            ahead += 1
        return False

    def _quantified_list(self, kind: type[exp.Expr], left: exp.Expr, every: bool) -> exp.Expr:
        """Expand ``x < ANY (a, b)`` into one comparison for each value; ``x = ANY (a, b)`` is IN."""
        self._tokens.need(TokenType.L_PAREN, "(")
        items = self._tokens.separated(self._context.scalar)
        self._tokens.need(TokenType.R_PAREN, ")")
        if kind is (exp.NEQ if every else exp.EQ):
            found = self._spanned_from(left, exp.In(this=left, expressions=items))
            return exp.Not(this=found) if every else found
        tests = []
        for item in items:
            self._tokens.count_operator()
            tests.append(self._spanned_from(left, kind(this=left.copy(), expression=item)))
        # in parentheses: it may be an operand of AND
        return exp.Paren(this=balanced(exp.And if every else exp.Or, tests))

    def subquery(self) -> exp.Expr:
        """Return the query in parentheses at the current token."""
        begin = self._tokens.index
        self._tokens.need(TokenType.L_PAREN, "(")
        if not self._tokens.begins_query() and not self._tokens.at(TokenType.L_PAREN):
            raise self._tokens.unexpected("SELECT", "VALUES", "WITH")
        node = self._context.query()
        self._tokens.need(TokenType.R_PAREN, ")")
        return self._tokens.spanned(begin, exp.Subquery(this=node))

    def _is(self, left: exp.Expr) -> exp.Expr:
        begin = self._tokens.index
        negated = self._tokens.take_words("NOT")
        # IS [NOT] DISTINCT FROM
        if self._tokens.take_words("DISTINCT"):
            self._tokens.need_word("FROM")
            equal: exp.Expr = exp.NullSafeEQ(this=left, expression=self._context.operand())
            return equal if negated else exp.Not(this=self._spanned_from(left, equal))
        # IS [NOT] JSON
        if self._tokens.take_words("JSON"):
            node: exp.Expr = self._is_json(left)
            return exp.Not(this=self._spanned_from(left, node)) if negated else node
        # IS [NOT] NULL | TRUE | FALSE | UNKNOWN, where UNKNOWN is NULL
        word = self._tokens.word()
        if word not in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
            raise (
                self._tokens.unexpected("NULL", "TRUE", "FALSE", "DISTINCT FROM")
                if negated
                else self._tokens.unexpected("NULL", "NOT NULL", "TRUE", "FALSE")
            )
        self._tokens.advance()
        value: exp.Expr = exp.Null() if word in ("NULL", "UNKNOWN") else exp.Boolean(this=word == "TRUE")
        node = exp.Is(this=left, expression=self._tokens.spanned(begin, value))
        return exp.Not(this=self._spanned_from(left, node)) if negated else node

    def _is_json(self, left: exp.Expr) -> exp.Expr:
        """Parse ``x IS JSON [VALUE | OBJECT | ARRAY | SCALAR]``."""
        if self._tokens.word() not in _JSON_KINDS:
            return FunctionCall(this="is_json", expressions=[left])
        kind = self._literals.unit_as_string()
        return FunctionCall(this="is_json", expressions=[left, kind])

    def _spanned_from(self, left: exp.Expr, node: exp.Expr) -> exp.Expr:
        """Set the span of a node from the start of its left operand to the last token read, and return the
        node.
        """
        return set_span(node, left.meta["start"], self._tokens.previous.end + 1)

    def unique(self, begin: int) -> exp.Expr:
        """Parse ``UNIQUE (SELECT a, b ..)``: no two rows are equal; rows with a NULL equal none.

        It is NOT EXISTS (SELECT 1 FROM (..) AS t (a, b) WHERE a IS NOT NULL AND b IS NOT NULL GROUP BY a, b
        HAVING COUNT(*) > 1).
        """
        self._tokens.advance(2)
        query = self._context.query()
        self._tokens.need(TokenType.R_PAREN, ")")
        items = query.expressions if isinstance(query, exp.Select) else []
        if not items or any(isinstance(item, AllColumns) for item in items):
            hint = "write UNIQUE (SELECT a, b FROM t): the columns, and no set operation"
            raise self._tokens.not_yet("UNIQUE of a query without a list of columns", hint, begin)

        def made(node: exp.Expr) -> Any:
            return self._tokens.spanned(begin, node)

        names = [f"$unique{number}" for number in range(len(items))]

        def columns() -> list[exp.Expr]:
            return [
                made(Reference(expressions=[made(exp.to_identifier(name, quoted=True))])) for name in names
            ]

        there = [made(exp.Not(this=made(exp.Is(this=c, expression=made(exp.Null()))))) for c in columns()]
        where = there[0]
        for condition in there[1:]:
            where = made(exp.And(this=where, expression=condition))
        alias = exp.TableAlias(
            this=made(exp.to_identifier("$unique", quoted=True)),
            columns=[made(exp.to_identifier(name, quoted=True)) for name in names],
        )
        count = made(FunctionCall(this="count", star=True, expressions=[]))
        twice = made(exp.GT(this=count, expression=made(exp.Literal.number(1))))
        one = made(exp.Literal.number(1))
        repeated = exp.Select(
            expressions=[made(exp.Alias(this=one, alias=exp.to_identifier("1", quoted=True)))],
            from_=exp.From(this=made(exp.Subquery(this=query, alias=made(alias)))),
            joins=[],
            where=where,
            group=made(exp.Group(expressions=columns())),
            having=twice,
        )
        node: exp.Expr = made(exp.Not(this=made(exp.Exists(this=made(exp.Subquery(this=made(repeated)))))))
        return node
