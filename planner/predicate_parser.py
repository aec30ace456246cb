"""The grammar of tests: BETWEEN, IN, LIKE and its kin, IS."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.planner.call_parser import CallParser
from penstock.planner.lexical import MAX_OPERATORS, too_many_operators
from penstock.planner.syntax import FunctionCall, balanced, place

TESTS = ("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "SIMILAR")
"""Words a test begins with, NOT before them or not."""

QUERY_WORDS = ("SELECT", "WITH", "VALUES")
"""Words a query begins with; ``TABLE name`` is one too."""

_QUANTIFIERS = ("ANY", "SOME", "ALL")
_SIGNS: dict[type[exp.Expr], str] = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_SHOWN = 60
"""A longer list is not repeated in a hint."""
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_JSON_KINDS = ("VALUE", "OBJECT", "ARRAY", "SCALAR")


class PredicateParser(CallParser):
    """Tests behind a value."""

    query: Callable[[], exp.Expr]
    """The grammar of whole queries, which stands above this one."""

    def test(self, word: str, left: exp.Expr, negated: bool) -> exp.Expr:
        """Return the test whose first word has been passed over, NOT put around it where that was written."""
        if word in ("LIKE", "ILIKE") and self.word() in ("ANY", "SOME", "ALL") and self.at(TokenType.L_PAREN, 1):
            return self._one_of_patterns(exp.ILike if word == "ILIKE" else exp.Like, left, negated)
        node = self._is(left) if word == "IS" else self._plain(word, left)
        return exp.Not(this=self._placed_like(left, node)) if negated else node

    def _plain(self, word: str, left: exp.Expr) -> exp.Expr:
        if word == "BETWEEN":
            symmetric = self.take_words("SYMMETRIC")
            if not symmetric:
                self.take_words("ASYMMETRIC")
            low = self.operand()
            self.need_word("AND")
            return exp.Between(this=left, low=low, high=self.operand(), symmetric=symmetric)
        if word == "IN":
            return self._in(left)
        if word == "SIMILAR":
            self.need_word("TO")
        pattern = self.operand()
        if word in ("RLIKE", "REGEXP"):
            return exp.RegexpLike(this=left, expression=pattern)
        kind = {"ILIKE": exp.ILike, "LIKE": exp.Like}.get(word, exp.SimilarTo)
        node: exp.Expr = kind(this=left, expression=pattern)
        return exp.Escape(this=node, expression=self.string("an escape character")) if self.take_words("ESCAPE") else node

    def _one_of_patterns(self, kind: type[exp.Expr], left: exp.Expr, negated: bool) -> exp.Expr:
        """``x LIKE ANY (a, b)``: one test a pattern; NOT belongs to each of them."""
        connective = exp.And if self.word() == "ALL" else exp.Or
        self._advance(2)
        tests = []
        for pattern in self.separated(self.scalar):
            self.count_operator()
            test = self._placed_like(left, kind(this=left.copy(), expression=pattern))
            tests.append(self._placed_like(left, exp.Not(this=test)) if negated else test)
        self.need(TokenType.R_PAREN, ")")
        return balanced(connective, tests)

    def _in(self, left: exp.Expr) -> exp.Expr:
        if self.at(TokenType.L_PAREN) and self.begins_query(1):
            return exp.In(this=left, query=self.subquery())
        self.need(TokenType.L_PAREN, "(")
        items = self.separated(self.scalar)
        self.need(TokenType.R_PAREN, ")")
        return exp.In(this=left, expressions=items)

    def begins_query(self, ahead: int = 0) -> bool:
        """Return whether a query begins so many tokens on."""
        return self.word(ahead) in QUERY_WORDS or (self.word(ahead) == "TABLE" and self.is_name(ahead + 1))

    def quantified(self, kind: type[exp.Expr], left: exp.Expr) -> exp.Expr | None:
        """Return ``x = ANY (query)``, which is IN, or ``x <> ALL (query)``, NOT IN, behind the sign; ``None`` where no quantifier stands.

        SQL-1601 for the others, with what to write.
        """
        word, inside = self.word(), 2
        if word not in _QUANTIFIERS or kind not in _SIGNS or not self.at(TokenType.L_PAREN, 1):
            return None
        while self.at(TokenType.L_PAREN, inside):
            inside += 1
        every = word == "ALL"
        if not self.begins_query(inside):
            if every or self._holds_comma():
                raise self._quantified_list(kind, left, word)
            return None  # the aggregate of that name
        if kind is not (exp.NEQ if every else exp.EQ):
            raise self.not_yet(f"{_SIGNS[kind]} {word} (SELECT ..)", _instead_of(kind, every=every))
        self._advance()
        found = self._placed_like(left, exp.In(this=left, query=self.subquery()))
        return exp.Not(this=found) if every else found

    def _holds_comma(self) -> bool:
        """Return whether the parentheses behind the word here hold several items, which no aggregate of its name takes."""
        depth, ahead = 0, 1
        while (token := self.token(ahead)) is not None:
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if depth == 0:
                return False
            if depth == 1 and token.token_type is TokenType.COMMA:
                return True
            ahead += 1
        return False

    def _quantified_list(self, kind: type[exp.Expr], left: exp.Expr, word: str) -> PenstockError:
        """Return the refusal of ``x = ANY (a, b)``, with what to write in the words of the query."""
        begin = self._index
        self._advance(2)
        items = self.separated(self.scalar)
        self.need(TokenType.R_PAREN, ")")
        value, *texts = (self.sql[item.meta["start"] : item.meta["end"] + 1] for item in (left, *items))
        every, sign = word == "ALL", _SIGNS[kind]
        tests = [f"{value} {sign} {text}" for text in texts]
        if len(value) + sum(map(len, texts)) > _SHOWN or "\n" in "".join((value, *texts)):
            value, texts, tests = "x", ["a", "b", ".."], [f"x {sign} a", f"x {sign} b", ".."]
        if sign == ("<>" if every else "="):
            instead = f"{value} {'NOT IN' if every else 'IN'} ({', '.join(texts)})"
        else:
            instead = f"({(' AND ' if every else ' OR ').join(tests)})"
        return self.not_yet(f"{sign} {word} over a list of values", f"write {instead}", begin)

    def subquery(self) -> exp.Expr:
        """Return the query in parentheses that stands here."""
        begin = self._index
        self.need(TokenType.L_PAREN, "(")
        if not self.begins_query() and not self.at(TokenType.L_PAREN):
            raise self.unexpected("SELECT", "VALUES", "WITH")
        node = self.query()
        self.need(TokenType.R_PAREN, ")")
        return self.placed(begin, exp.Subquery(this=node))

    def _is(self, left: exp.Expr) -> exp.Expr:
        begin = self._index
        negated = self.take_words("NOT")
        if self.take_words("DISTINCT"):
            self.need_word("FROM")
            equal: exp.Expr = exp.NullSafeEQ(this=left, expression=self.operand())
            return equal if negated else exp.Not(this=self._placed_like(left, equal))
        if self.take_words("JSON"):
            node: exp.Expr = self._is_json(left)
            return exp.Not(this=self._placed_like(left, node)) if negated else node
        word = self.word()
        if word not in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
            raise self.unexpected("NULL", "TRUE", "FALSE", "DISTINCT FROM") if negated else self.unexpected("NULL", "NOT NULL", "TRUE", "FALSE")
        self._advance()
        value: exp.Expr = exp.Null() if word in ("NULL", "UNKNOWN") else exp.Boolean(this=word == "TRUE")
        node = exp.Is(this=left, expression=self.placed(begin, value))
        return exp.Not(this=self._placed_like(left, node)) if negated else node

    def _is_json(self, left: exp.Expr) -> exp.Expr:
        """``x IS JSON [VALUE | OBJECT | ARRAY | SCALAR]``."""
        if self.word() not in _JSON_KINDS:
            return FunctionCall(this="is_json", expressions=[left])
        kind = self.unit_as_string()
        return FunctionCall(this="is_json", expressions=[left, kind])

    def count_operator(self) -> None:
        """Count one more operator; raise SQL-1007 where there are too many."""
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            raise too_many_operators(self.here())

    def _placed_like(self, left: exp.Expr, node: exp.Expr) -> exp.Expr:
        """Place a node from where its left side begins to here."""
        return place(node, left.meta["start"], self._prev.end + 1)


def _instead_of(kind: type[exp.Expr], *, every: bool) -> str:
    """Return what to write for a comparison with some or every row of a query."""
    if kind in (exp.EQ, exp.NEQ):
        return "write NOT EXISTS (SELECT 1 FROM .. WHERE v <> x)" if every else "write EXISTS (SELECT 1 FROM .. WHERE v <> x)"
    largest = (kind in (exp.GT, exp.GTE)) == every
    return f"write x {_SIGNS[kind]} (SELECT {'MAX' if largest else 'MIN'}(v) FROM ..), which is NULL where there are no rows"
