"""The grammar of scalar expressions: Spark's operator precedence and sqlglot's nodes. Every node gets its
span in the text.

Predicates are read here too: BETWEEN, IN, LIKE and its variants, IS.
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
"""Words that begin a predicate, with or without NOT before them."""

QUERY_WORDS = ("SELECT", "WITH", "VALUES")
"""Words that begin a query; ``TABLE name`` begins one too."""

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
"""Characters of values that a hint repeats; above it shows x, a, b."""
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_JSON_KINDS = ("VALUE", "OBJECT", "ARRAY", "SCALAR")


class PredicateParser(CallParser):
    """Parses the predicate that follows a value."""

    query: Callable[[], exp.Expr]
    """The grammar of whole queries; ``QueryParser`` defines it."""

    def test(self, word: str, left: exp.Expr, negated: bool) -> exp.Expr:
        """Return the predicate whose first word has been consumed, wrapped in NOT when ``negated``."""
        # LIKE ANY ('a%', 'b%')
        if (
            word in ("LIKE", "ILIKE")
            and self.word() in ("ANY", "SOME", "ALL")
            and self.at(TokenType.L_PAREN, 1)
        ):
            return self._one_of_patterns(exp.ILike if word == "ILIKE" else exp.Like, left, negated)
        node = self._is(left) if word == "IS" else self._plain(word, left)
        return exp.Not(this=self._spanned_from(left, node)) if negated else node

    def _plain(self, word: str, left: exp.Expr) -> exp.Expr:
        # [SYMMETRIC | ASYMMETRIC] low AND high
        if word == "BETWEEN":
            symmetric = self.take_words("SYMMETRIC")
            if not symmetric:
                self.take_words("ASYMMETRIC")
            low = self.operand()
            self.need_word("AND")
            return exp.Between(this=left, low=low, high=self.operand(), symmetric=symmetric)
        if word == "IN":
            return self._in(left)
        # every other predicate has one pattern: SIMILAR TO, RLIKE, REGEXP, LIKE, ILIKE
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
        """Expand ``x LIKE ANY (a, b)`` into one LIKE for each pattern. NOT applies to each of them."""
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
        # IN (SELECT ..), else IN (a, b, ..)
        if self.at(TokenType.L_PAREN) and self.begins_query(1):
            return exp.In(this=left, query=self.subquery())
        self.need(TokenType.L_PAREN, "(")
        items = self.separated(self.scalar)
        self.need(TokenType.R_PAREN, ")")
        return exp.In(this=left, expressions=items)

    def begins_query(self, ahead: int = 0) -> bool:
        """Return whether a query begins ``ahead`` tokens on."""
        return self.word(ahead) in QUERY_WORDS or (self.word(ahead) == "TABLE" and self.is_name(ahead + 1))

    def quantified(self, kind: type[exp.Expr], left: exp.Expr) -> exp.Expr | None:
        """Return the predicate for ``x = ANY (query)``, which is IN, or ``x <> ALL (query)``, which is NOT
        IN. The comparison sign has been consumed.

        Return ``None`` when no quantifier follows. Raise SQL-1601 for the other comparisons, with a hint what
        to write instead.
        """
        word, inside = self.word(), 2
        if word not in _QUANTIFIERS or kind not in _SIGNS or not self.at(TokenType.L_PAREN, 1):
            return None
        # = ANY ((SELECT ..)) is a query as well
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
        """Return whether the parentheses behind the current word list several items. No aggregate called ANY,
        SOME or ALL takes several.
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
        """Return the error of ``x = ANY (a, b)``; its hint rewrites it in the query's own text."""
        begin = self._index
        self._advance(2)
        items = self.separated(self.scalar)
        self.need(TokenType.R_PAREN, ")")
        value, *texts = (self.sql[item.meta["start"] : item.meta["end"] + 1] for item in (left, *items))
        every, sign = word == "ALL", _SIGNS[kind]
        tests = [f"{value} {sign} {text}" for text in texts]
        # long text is shown as x, a, b
        if len(value) + sum(map(len, texts)) > _SHOWN or "\n" in "".join((value, *texts)):
            value, texts, tests = "x", ["a", "b", ".."], [f"x {sign} a", f"x {sign} b", ".."]
        if sign == ("<>" if every else "="):
            instead = f"{value} {'NOT IN' if every else 'IN'} ({', '.join(texts)})"
        else:
            instead = f"({(' AND ' if every else ' OR ').join(tests)})"
        return self.not_yet(f"{sign} {word} over a list of values", f"write {instead}", begin)

    def subquery(self) -> exp.Expr:
        """Return the query in parentheses at the current token."""
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
        # IS [NOT] DISTINCT FROM
        if self.take_words("DISTINCT"):
            self.need_word("FROM")
            equal: exp.Expr = exp.NullSafeEQ(this=left, expression=self.operand())
            return equal if negated else exp.Not(this=self._spanned_from(left, equal))
        # IS [NOT] JSON
        if self.take_words("JSON"):
            node: exp.Expr = self._is_json(left)
            return exp.Not(this=self._spanned_from(left, node)) if negated else node
        # IS [NOT] NULL | TRUE | FALSE | UNKNOWN, where UNKNOWN is NULL
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
        """Parse ``x IS JSON [VALUE | OBJECT | ARRAY | SCALAR]``."""
        if self.word() not in _JSON_KINDS:
            return FunctionCall(this="is_json", expressions=[left])
        kind = self.unit_as_string()
        return FunctionCall(this="is_json", expressions=[left, kind])

    def count_operator(self) -> None:
        """Count one more operator. Raise SQL-1007 above ``MAX_OPERATORS``."""
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            raise too_many_operators(self.current_span())

    def _spanned_from(self, left: exp.Expr, node: exp.Expr) -> exp.Expr:
        """Set the span of a node from the start of its left operand to the last token read, and return the
        node.
        """
        return set_span(node, left.meta["start"], self._prev.end + 1)


def _instead_of(kind: type[exp.Expr], *, every: bool) -> str:
    """Return the rewrite to suggest for ANY or ALL over a query."""
    if kind in (exp.EQ, exp.NEQ):
        return (
            "write NOT EXISTS (SELECT 1 FROM .. WHERE v <> x)"
            if every
            else "write EXISTS (SELECT 1 FROM .. WHERE v <> x)"
        )
    # x > ALL and x < ANY compare with the largest value, the others with the smallest
    largest = (kind in (exp.GT, exp.GTE)) == every
    return (
        f"write x {_SIGNS[kind]} (SELECT {'MAX' if largest else 'MIN'}(v) FROM ..), which is NULL where "
        "there are no rows"
    )


# precedence and node of each operator; a higher number binds tighter
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
    """Parses scalar expressions by precedence climbing."""

    def scalar(self) -> exp.Expr:
        """Return one expression: OR of ANDs of conditions."""
        self.enter()
        node = self._connected("OR", exp.Or, self._and)
        self.leave()
        return node

    def _and(self) -> exp.Expr:
        return self._connected("AND", exp.And, self._not)

    def _connected(self, word: str, kind: type[exp.Expr], operand: Any) -> exp.Expr:
        # collected first, then balanced: a long OR would otherwise be as deep as it is long
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
        # EXISTS (SELECT ..); EXISTS(array, x -> ..) is a function
        if self.at_words("EXISTS") and self.at(TokenType.L_PAREN, 1):
            if not self.begins_query(2) and self.lists_arguments(1):
                return self._postfix(begin, self.call(begin))
            self._advance()
            return self.spanned(begin, exp.Exists(this=self.subquery()))
        # a value and the predicates behind it: a + 1 BETWEEN .. IS NULL
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
        """Return an operand of a predicate: its operators bind tighter than a comparison."""
        return self._binary(2)

    def _binary(self, least: int) -> exp.Expr:
        begin = self._index
        # precedence climbing: the right operand has only operators that bind tighter than this one
        left = self._unary()
        chain = 0
        while (found := self._operator()) is not None and found[0] >= least:
            precedence, kind = found
            chain += 1
            self.count_operator()
            # a chain is a tree as deep as it is long; chains of || are the exception
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
            # (row).field
            if self.take(TokenType.DOT):
                node = self.spanned(begin, exp.Dot(this=node, expression=self.identifier("field name")))
            # array[i], map[key]
            elif self.take(TokenType.L_BRACKET):
                index = self.scalar()
                self.need(TokenType.R_BRACKET, "]")
                node = self.spanned(begin, exp.Bracket(this=node, expressions=[index]))
            # value::type
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
        # literals first: DATE '..' begins with a word that may also be a name
        literal = self.literal()
        if literal is not None:
            return literal
        begin = self._index
        # (a), (a, b) or (SELECT ..)
        if self.take(TokenType.L_PAREN):
            return self._parenthesised(begin)
        word = self.word()
        if word == "CASE":
            return self._case(begin)
        if word in ("CAST", "TRY_CAST") and self.at(TokenType.L_PAREN, 1):
            return self.cast(begin)
        # ARRAY[1, 2]
        if word in ("ARRAY", "MAP") and self.at(TokenType.L_BRACKET, 1):
            self._advance(2)
            items = [] if self.at(TokenType.R_BRACKET) else self.separated(self.scalar)
            self.need(TokenType.R_BRACKET, "]")
            return self.spanned(begin, FunctionCall(this=word.lower(), expressions=items))
        # ARRAY(SELECT ..)
        if word in ("ARRAY", "MULTISET") and self.at(TokenType.L_PAREN, 1) and self.begins_query(2):
            raise self.not_yet(
                f"{word}(SELECT ..)", "write (SELECT collect_list(v) FROM ..), which leaves NULLs out"
            )
        # f(..)
        if self.at(TokenType.L_PAREN, 1) and (self.is_name() or word in _FUNCTIONS):
            return self.call(begin)
        # RUNNING LAST(A.x), FINAL COUNT(*): measures of MATCH_RECOGNIZE
        if word in ("RUNNING", "FINAL") and self.is_name(1) and self.at(TokenType.L_PAREN, 2):
            self._advance()
            return self.spanned(begin, Semantics(this=self.call(self._index), final=word == "FINAL"))
        # CURRENT_DATE
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
        # window.end is a path although END is reserved
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
        # a scalar subquery
        if self.begins_query():
            query = self.query()
            self.need(TokenType.R_PAREN, ")")
            return self.spanned(begin, exp.Subquery(this=query))
        # (a, b) is a row; (a) keeps its parentheses as a node
        node = self.scalar()
        if self.take(TokenType.COMMA):
            items = [node, *self.separated(self.scalar)]
            self.need(TokenType.R_PAREN, ")")
            return self.spanned(begin, exp.Tuple(expressions=items))
        self.need(TokenType.R_PAREN, ")")
        return self.spanned(begin, exp.Paren(this=node))

    def _case(self, begin: int) -> exp.Expr:
        self._advance()
        # CASE x WHEN 1 .. compares, CASE WHEN x = 1 .. tests
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
        """Return ``*`` or ``t.*`` with its EXCEPT list, or ``None`` when neither is next."""
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
