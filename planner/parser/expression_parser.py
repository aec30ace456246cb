"""The grammar of scalar expressions: Spark's precedence, sqlglot's nodes, a place for every node.

The grammar of tests: BETWEEN, IN, LIKE and its kin, IS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.planner.parser.call_parser import CallParser
from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.scanner import MAX_DEPTH, MAX_OPERATORS, too_deep, too_many_operators
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    FunctionCall,
    Reference,
    Semantics,
    balanced,
    set_span,
)

TESTS = ("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "SIMILAR")
"""Words a test begins with, NOT before them or not."""

QUERY_WORDS = ("SELECT", "WITH", "VALUES")
"""Words a query begins with; ``TABLE name`` is one too."""

_QUANTIFIERS = ("ANY", "SOME", "ALL")
_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
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
        if (
            word in ("LIKE", "ILIKE")
            and self.word() in ("ANY", "SOME", "ALL")
            and self.at(TokenType.L_PAREN, 1)
        ):
            return self._one_of_patterns(exp.ILike if word == "ILIKE" else exp.Like, left, negated)
        node = self._is(left) if word == "IS" else self._plain(word, left)
        return exp.Not(this=self._spanned_from(left, node)) if negated else node

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
        return (
            exp.Escape(this=node, expression=self.string("an escape character"))
            if self.take_words("ESCAPE")
            else node
        )

    def _one_of_patterns(self, kind: type[exp.Expr], left: exp.Expr, negated: bool) -> exp.Expr:
        """``x LIKE ANY (a, b)``: one test a pattern; NOT belongs to each of them."""
        connective = exp.And if self.word() == "ALL" else exp.Or
        self._advance(2)
        tests = []
        for pattern in self.separated(self.scalar):
            self.count_operator()
            test = self._spanned_from(left, kind(this=left.copy(), expression=pattern))
            tests.append(self._spanned_from(left, exp.Not(this=test)) if negated else test)
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
        """Return ``x = ANY (query)``, which is IN, or ``x <> ALL (query)``, NOT IN, behind the sign; ``None``
        where no quantifier stands.

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
        found = self._spanned_from(left, exp.In(this=left, query=self.subquery()))
        return exp.Not(this=found) if every else found

    def _holds_comma(self) -> bool:
        """Return whether the parentheses behind the word here hold several items, which no aggregate of
        its name takes.
        """
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
        return self.spanned(begin, exp.Subquery(this=node))

    def _is(self, left: exp.Expr) -> exp.Expr:
        begin = self._index
        negated = self.take_words("NOT")
        if self.take_words("DISTINCT"):
            self.need_word("FROM")
            equal: exp.Expr = exp.NullSafeEQ(this=left, expression=self.operand())
            return equal if negated else exp.Not(this=self._spanned_from(left, equal))
        if self.take_words("JSON"):
            node: exp.Expr = self._is_json(left)
            return exp.Not(this=self._spanned_from(left, node)) if negated else node
        word = self.word()
        if word not in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
            raise (
                self.unexpected("NULL", "TRUE", "FALSE", "DISTINCT FROM")
                if negated
                else self.unexpected("NULL", "NOT NULL", "TRUE", "FALSE")
            )
        self._advance()
        value: exp.Expr = exp.Null() if word in ("NULL", "UNKNOWN") else exp.Boolean(this=word == "TRUE")
        node = exp.Is(this=left, expression=self.spanned(begin, value))
        return exp.Not(this=self._spanned_from(left, node)) if negated else node

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
            raise too_many_operators(self.current_span())

    def _spanned_from(self, left: exp.Expr, node: exp.Expr) -> exp.Expr:
        """Set the span of a node: from the begin of its left side to the last token read. Return the node."""
        return set_span(node, left.meta["start"], self._prev.end + 1)


def _instead_of(kind: type[exp.Expr], *, every: bool) -> str:
    """Return what to write for a comparison with some or every row of a query."""
    if kind in (exp.EQ, exp.NEQ):
        return (
            "write NOT EXISTS (SELECT 1 FROM .. WHERE v <> x)"
            if every
            else "write EXISTS (SELECT 1 FROM .. WHERE v <> x)"
        )
    largest = (kind in (exp.GT, exp.GTE)) == every
    return (
        f"write x {_SIGNS[kind]} (SELECT {'MAX' if largest else 'MIN'}(v) FROM ..), which is NULL where "
        "there are no rows"
    )


BINARY: dict[TokenType, tuple[int, type[exp.Expr]]] = {
    TokenType.EQ: (1, exp.EQ),
    TokenType.NEQ: (1, exp.NEQ),
    TokenType.NULLSAFE_EQ: (1, exp.NullSafeEQ),
    TokenType.LT: (1, exp.LT),
    TokenType.LTE: (1, exp.LTE),
    TokenType.GT: (1, exp.GT),
    TokenType.GTE: (1, exp.GTE),
    TokenType.PIPE: (2, exp.BitwiseOr),
    TokenType.CARET: (3, exp.BitwiseXor),
    TokenType.AMP: (4, exp.BitwiseAnd),
    TokenType.PLUS: (5, exp.Add),
    TokenType.DASH: (5, exp.Sub),
    TokenType.DPIPE: (5, exp.DPipe),
    TokenType.STAR: (6, exp.Mul),
    TokenType.SLASH: (6, exp.Div),
    TokenType.MOD: (6, exp.Mod),
}
_WINDOWS = ("window", "session_window")
_UNARY = {TokenType.DASH: exp.Neg, TokenType.TILDE: exp.BitwiseNot}
_FUNCTIONS = ("LEFT", "RIGHT", "WINDOW", "LIKE", "RLIKE")
"""Reserved words that are functions where a parenthesis follows."""
_NO_PARENTHESES = frozenset(
    ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP", "LOCALTIME")
)


class ExpressionParser(PredicateParser):
    """Scalar expressions."""

    def scalar(self) -> exp.Expr:
        """Return one expression: OR of ANDs of conditions."""
        self.enter()
        node = self._connected("OR", exp.Or, self._and)
        self.leave()
        return node

    def _and(self) -> exp.Expr:
        return self._connected("AND", exp.And, self._not)

    def _connected(self, word: str, kind: type[exp.Expr], operand: Any) -> exp.Expr:
        operands = [operand()]
        while self.take_words(word):
            self.count_operator()
            operands.append(operand())
        return balanced(kind, operands)

    def _not(self) -> exp.Expr:
        begin = self._index
        if not self.take_words("NOT"):
            return self._predicate()
        self.enter()
        node = self.spanned(begin, exp.Not(this=self._not()))
        self.leave()
        return node

    # predicates

    def _predicate(self) -> exp.Expr:
        begin = self._index
        if self.at_words("EXISTS") and self.at(TokenType.L_PAREN, 1):
            if not self.begins_query(2) and self.lists_arguments(1):
                return self._postfix(begin, self.call(begin))
            self._advance()
            return self.spanned(begin, exp.Exists(this=self.subquery()))
        node = self._binary(1)
        while True:
            negated = self.word() == "NOT" and self.word(1) in TESTS
            word = self.word(1) if negated else self.word()
            if word not in TESTS and word != "IS":
                return node
            self.count_operator()
            self._advance(2 if negated else 1)
            node = self.spanned(begin, self.test(word, node, negated))

    # operators

    def operand(self) -> exp.Expr:
        """Return an operand of a predicate: what binds tighter than a comparison."""
        return self._binary(2)

    def _binary(self, least: int) -> exp.Expr:
        begin = self._index
        left = self._unary()
        chain = 0
        while (found := self._operator()) is not None and found[0] >= least:
            precedence, kind = found
            chain += 1
            self.count_operator()
            if chain > MAX_DEPTH and kind is not exp.DPipe:
                raise too_deep(self.current_span())
            self._advance()
            compared = self.quantified(kind, left)
            left = self.spanned(begin, compared or kind(this=left, expression=self._binary(precedence + 1)))
        return left

    def _operator(self) -> tuple[int, type[exp.Expr]] | None:
        if self.word() == "DIV":
            return 6, exp.IntDiv
        token = self.token()
        return BINARY.get(token.token_type) if token is not None else None

    def _unary(self) -> exp.Expr:
        begin = self._index
        if self.take(TokenType.PLUS):
            self.enter()
            node = self._unary()
            self.leave()
            return node
        for token, kind in _UNARY.items():
            if self.take(token):
                self.enter()
                node = self.spanned(begin, kind(this=self._unary()))
                self.leave()
                return node
        return self._postfix(begin, self._primary())

    def _postfix(self, begin: int, node: exp.Expr) -> exp.Expr:
        steps = 0
        while True:
            if self.take(TokenType.DOT):
                node = self.spanned(begin, exp.Dot(this=node, expression=self.identifier("field name")))
            elif self.take(TokenType.L_BRACKET):
                index = self.scalar()
                self.need(TokenType.R_BRACKET, "]")
                node = self.spanned(begin, exp.Bracket(this=node, expressions=[index]))
            elif self.take(TokenType.DCOLON):
                node = self.cast_behind(begin, node)
            elif self.take_words("AT", "TIME", "ZONE"):
                node = self.spanned(
                    begin, FunctionCall(this="at_time_zone", expressions=[node, self._primary()])
                )
            elif self.at_words("COLLATE"):
                raise self.not_yet("COLLATE", "compare lower(..) of both sides")
            else:
                return node
            steps += 1
            if steps > MAX_DEPTH:
                raise too_deep(self.current_span())

    # primaries

    def _primary(self) -> exp.Expr:
        literal = self.literal()
        if literal is not None:
            return literal
        begin = self._index
        if self.take(TokenType.L_PAREN):
            return self._parenthesised(begin)
        word = self.word()
        if word == "CASE":
            return self._case(begin)
        if word in ("CAST", "TRY_CAST") and self.at(TokenType.L_PAREN, 1):
            return self.cast(begin)
        if word in ("ARRAY", "MAP") and self.at(TokenType.L_BRACKET, 1):
            self._advance(2)
            items = [] if self.at(TokenType.R_BRACKET) else self.separated(self.scalar)
            self.need(TokenType.R_BRACKET, "]")
            return self.spanned(begin, FunctionCall(this=word.lower(), expressions=items))
        if word in ("ARRAY", "MULTISET") and self.at(TokenType.L_PAREN, 1) and self.begins_query(2):
            raise self.not_yet(
                f"{word}(SELECT ..)", "write (SELECT collect_list(v) FROM ..), which leaves NULLs out"
            )
        if self.at(TokenType.L_PAREN, 1) and (self.is_name() or word in _FUNCTIONS):
            return self.call(begin)
        if word in ("RUNNING", "FINAL") and self.is_name(1) and self.at(TokenType.L_PAREN, 2):
            self._advance()
            return self.spanned(begin, Semantics(this=self.call(self._index), final=word == "FINAL"))
        if word in _NO_PARENTHESES and not self.at(TokenType.DOT, 1):
            self._advance()
            return self.spanned(begin, FunctionCall(this=word.lower(), expressions=[]))
        if not self.is_name():
            raise self._no_expression()
        return self._reference(begin)

    def _no_expression(self) -> PenstockError:
        word = self.word()
        if self.begins_query():
            hint = f"put it into parentheses of its own: ({word} ..)"
            return PenstockError(
                "SQL-1001",
                "a query is a value in parentheses only",
                span=self.current_span(),
                hint=hint,
                sqlstate="42601",
            )
        if word in RESERVED and word not in ("FROM", "WHERE", "GROUP", "HAVING", "LIMIT", "UNION"):
            return self.no_name("column")
        if self.at(TokenType.STAR):
            return PenstockError(
                "SQL-1001",
                "* stands for all columns only in the SELECT list and in COUNT(*)",
                span=self.current_span(),
                sqlstate="42601",
            )
        if word:
            return PenstockError(
                "SQL-1001",
                f"an expression is missing before {word}",
                span=self.current_span(),
                sqlstate="42601",
            )
        return self.unexpected("an expression")

    def _reference(self, begin: int) -> exp.Expr:
        parts = [self.identifier("column")]
        while self.at(TokenType.DOT) and not self.at(TokenType.STAR, 1):
            self._advance()
            parts.append(
                self._end_of_window()
                if self.at_words("END") and parts[-1].name.lower() in _WINDOWS
                else self.identifier("column")
            )
            if len(parts) > MAX_DEPTH:
                raise too_deep(self.current_span())
        return self.spanned(begin, Reference(expressions=parts))

    def _end_of_window(self) -> exp.Identifier:
        begin = self._index
        self._advance()
        return self.spanned(begin, exp.Identifier(this="end", quoted=False))

    def _parenthesised(self, begin: int) -> exp.Expr:
        if self.begins_query():
            query = self.query()
            self.need(TokenType.R_PAREN, ")")
            return self.spanned(begin, exp.Subquery(this=query))
        node = self.scalar()
        if self.take(TokenType.COMMA):
            items = [node, *self.separated(self.scalar)]
            self.need(TokenType.R_PAREN, ")")
            return self.spanned(begin, exp.Tuple(expressions=items))
        self.need(TokenType.R_PAREN, ")")
        return self.spanned(begin, exp.Paren(this=node))

    def _case(self, begin: int) -> exp.Expr:
        self._advance()
        operand = None if self.word() in ("WHEN", "ELSE", "END") else self.scalar()
        branches = []
        while self.take_words("WHEN"):
            condition = self.scalar()
            self.need_word("THEN")
            branches.append(exp.If(this=condition, true=self.scalar()))
        if not branches:
            raise self.unexpected("WHEN")
        default = self.scalar() if self.take_words("ELSE") else None
        if not self.take_words("END"):
            raise self.unexpected("END") if default is not None else self.unexpected("WHEN", "ELSE", "END")
        return self.spanned(begin, exp.Case(this=operand, ifs=branches, default=default))

    # select items

    def star(self) -> exp.Expr | None:
        """Return ``*`` or ``t.*`` with its EXCEPT list when it stands here."""
        begin = self._index
        qualifier = None
        if self.is_name() and self.at(TokenType.DOT, 1) and self.at(TokenType.STAR, 2):
            qualifier = self.identifier("table")
            self._advance()
        if not self.take(TokenType.STAR):
            return None
        hidden: list[exp.Identifier] = []
        if self.word() in ("EXCEPT", "EXCLUDE") and self.at(TokenType.L_PAREN, 1):
            self._advance(2)
            hidden = self.separated(lambda: self.identifier("column"))
            self.need(TokenType.R_PAREN, ")")
        elif self.word() in ("REPLACE", "RENAME") and self.at(TokenType.L_PAREN, 1):
            raise self.not_yet(f"* {self.word()}", "write the columns out")
        return self.spanned(begin, AllColumns(this=qualifier, except_=hidden))
