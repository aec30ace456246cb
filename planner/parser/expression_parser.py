"""The grammar of scalar expressions: Spark's operator precedence and sqlglot's nodes. Every node gets its
span in the text.

Predicates are read here too: BETWEEN, IN, LIKE and its variants, IS.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.planner.parser.call_parser import CallParser
from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.literal_parser import LiteralParser
from penstock.planner.parser.over_clause_parser import OverParser
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.scanner import MAX_DEPTH, too_deep
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
        """Return the predicate for ``x = ANY (query)``, which is IN, or ``x <> ALL (query)``, which is NOT
        IN. The comparison sign has been consumed.

        Return ``None`` when no quantifier follows. Raise SQL-1601 for the other comparisons, with a hint what
        to write instead.
        """
        word, inside = self._tokens.word(), 2
        if word not in _QUANTIFIERS or kind not in _SIGNS or not self._tokens.at(TokenType.L_PAREN, 1):
            return None
        # = ANY ((SELECT ..)) is a query as well
        while self._tokens.at(TokenType.L_PAREN, inside):
            inside += 1
        every = word == "ALL"
        if not self._tokens.begins_query(inside):
            if every or self._holds_comma():
                raise self._quantified_list(kind, left, word)
            return None  # the aggregate of that name
        if kind is not (exp.NEQ if every else exp.EQ):
            raise self._tokens.not_yet(f"{_SIGNS[kind]} {word} (SELECT ..)", _instead_of(kind, every=every))
        self._tokens.advance()
        membership = self._spanned_from(left, exp.In(this=left, query=self.subquery()))
        return exp.Not(this=membership) if every else membership

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

    def _quantified_list(self, kind: type[exp.Expr], left: exp.Expr, word: str) -> PenstockError:
        """Return the error of ``x = ANY (a, b)``; its hint rewrites it in the query's own text."""
        begin = self._tokens.index
        self._tokens.advance(2)
        items = self._tokens.separated(self._context.scalar)
        self._tokens.need(TokenType.R_PAREN, ")")
        value, *texts = (
            self._tokens.text[item.meta["start"] : item.meta["end"] + 1] for item in (left, *items)
        )
        every, sign = word == "ALL", _SIGNS[kind]
        tests = [f"{value} {sign} {text}" for text in texts]
        # long text is shown as x, a, b
        if len(value) + sum(map(len, texts)) > _SHOWN or "\n" in "".join((value, *texts)):
            value, texts, tests = "x", ["a", "b", ".."], [f"x {sign} a", f"x {sign} b", ".."]
        if sign == ("<>" if every else "="):
            instead = f"{value} {'NOT IN' if every else 'IN'} ({', '.join(texts)})"
        else:
            instead = f"({(' AND ' if every else ' OR ').join(tests)})"
        return self._tokens.not_yet(f"{sign} {word} over a list of values", f"write {instead}", begin)

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


class ExpressionParser:
    """Parses scalar expressions by precedence climbing."""

    def __init__(self, context: ParserContext, literals: LiteralParser, over: OverParser) -> None:
        self._context, self._tokens = context, context.tokens
        self._literals = literals
        self._calls = CallParser(context, literals, over)
        self._predicates = PredicateParser(context, literals)
        # the rules that the levels below call upward
        context.scalar, context.operand = self.scalar, self.operand

    def scalar(self) -> exp.Expr:
        """Return one expression: OR of ANDs of conditions."""
        self._tokens.enter()
        node = self._connected("OR", exp.Or, self._and)
        self._tokens.leave()
        return node

    def _and(self) -> exp.Expr:
        return self._connected("AND", exp.And, self._not)

    def _connected(self, word: str, kind: type[exp.Expr], operand: Any) -> exp.Expr:
        # collected first, then balanced: a long OR would otherwise be as deep as it is long
        operands = [operand()]
        while self._tokens.take_words(word):
            self._tokens.count_operator()
            operands.append(operand())
        return balanced(kind, operands)

    def _not(self) -> exp.Expr:
        begin = self._tokens.index
        if not self._tokens.take_words("NOT"):
            return self._predicate()
        self._tokens.enter()
        node = self._tokens.spanned(begin, exp.Not(this=self._not()))
        self._tokens.leave()
        return node

    # predicates

    def _predicate(self) -> exp.Expr:
        begin = self._tokens.index
        # EXISTS (SELECT ..); EXISTS(array, x -> ..) is a function
        if self._tokens.at_words("EXISTS") and self._tokens.at(TokenType.L_PAREN, 1):
            if not self._tokens.begins_query(2) and self._calls.lists_arguments(1):
                return self._postfix(begin, self._calls.call(begin))
            self._tokens.advance()
            return self._tokens.spanned(begin, exp.Exists(this=self._predicates.subquery()))
        # a value and the predicates behind it: a + 1 BETWEEN .. IS NULL
        node = self._binary(1)
        while True:
            negated = self._tokens.word() == "NOT" and self._tokens.word(1) in TESTS
            word = self._tokens.word(1) if negated else self._tokens.word()
            if word not in TESTS and word != "IS":
                return node
            self._tokens.count_operator()
            self._tokens.advance(2 if negated else 1)
            node = self._tokens.spanned(begin, self._predicates.test(word, node, negated))

    # operators

    def operand(self) -> exp.Expr:
        """Return an operand of a predicate: its operators bind tighter than a comparison."""
        return self._binary(2)

    def _binary(self, least: int) -> exp.Expr:
        begin = self._tokens.index
        # precedence climbing: the right operand has only operators that bind tighter than this one
        left = self._unary()
        chain = 0
        while (operator := self._operator()) is not None and operator[0] >= least:
            precedence, kind = operator
            chain += 1
            self._tokens.count_operator()
            # a chain is a tree as deep as it is long; chains of || are the exception
            if chain > MAX_DEPTH and kind is not exp.DPipe:
                raise too_deep(self._tokens.current_span())
            self._tokens.advance()
            compared = self._predicates.quantified(kind, left)
            left = self._tokens.spanned(
                begin, compared or kind(this=left, expression=self._binary(precedence + 1))
            )
        return left

    def _operator(self) -> tuple[int, type[exp.Expr]] | None:
        if self._tokens.word() == "DIV":
            return 6, exp.IntDiv
        token = self._tokens.token()
        return BINARY.get(token.token_type) if token is not None else None

    def _unary(self) -> exp.Expr:
        begin = self._tokens.index
        if self._tokens.take(TokenType.PLUS):
            self._tokens.enter()
            node = self._unary()
            self._tokens.leave()
            return node
        for token, kind in _UNARY.items():
            if self._tokens.take(token):
                self._tokens.enter()
                node = self._tokens.spanned(begin, kind(this=self._unary()))
                self._tokens.leave()
                return node
        return self._postfix(begin, self._primary())

    def _postfix(self, begin: int, node: exp.Expr) -> exp.Expr:
        steps = 0
        while True:
            # (row).field
            if self._tokens.take(TokenType.DOT):
                node = self._tokens.spanned(
                    begin, exp.Dot(this=node, expression=self._tokens.identifier("field name"))
                )
            # array[i], map[key]
            elif self._tokens.take(TokenType.L_BRACKET):
                index = self.scalar()
                self._tokens.need(TokenType.R_BRACKET, "]")
                node = self._tokens.spanned(begin, exp.Bracket(this=node, expressions=[index]))
            # value::type
            elif self._tokens.take(TokenType.DCOLON):
                node = self._calls.cast_behind(begin, node)
            elif self._tokens.take_words("AT", "TIME", "ZONE"):
                node = self._tokens.spanned(
                    begin, FunctionCall(this="at_time_zone", expressions=[node, self._primary()])
                )
            elif self._tokens.at_words("COLLATE"):
                raise self._tokens.not_yet("COLLATE", "compare lower(..) of both sides")
            else:
                return node
            steps += 1
            if steps > MAX_DEPTH:
                raise too_deep(self._tokens.current_span())

    # primaries

    def _primary(self) -> exp.Expr:
        # literals first: DATE '..' begins with a word that may also be a name
        literal = self._literals.literal()
        if literal is not None:
            return literal
        begin = self._tokens.index
        # (a), (a, b) or (SELECT ..)
        if self._tokens.take(TokenType.L_PAREN):
            return self._parenthesised(begin)
        word = self._tokens.word()
        if word == "CASE":
            return self._case(begin)
        if word in ("CAST", "TRY_CAST") and self._tokens.at(TokenType.L_PAREN, 1):
            return self._calls.cast(begin)
        # ARRAY[1, 2]
        if word in ("ARRAY", "MAP") and self._tokens.at(TokenType.L_BRACKET, 1):
            self._tokens.advance(2)
            items = [] if self._tokens.at(TokenType.R_BRACKET) else self._tokens.separated(self.scalar)
            self._tokens.need(TokenType.R_BRACKET, "]")
            return self._tokens.spanned(begin, FunctionCall(this=word.lower(), expressions=items))
        # ARRAY(SELECT ..)
        if (
            word in ("ARRAY", "MULTISET")
            and self._tokens.at(TokenType.L_PAREN, 1)
            and self._tokens.begins_query(2)
        ):
            raise self._tokens.not_yet(
                f"{word}(SELECT ..)", "write (SELECT collect_list(v) FROM ..), which leaves NULLs out"
            )
        # f(..)
        if self._tokens.at(TokenType.L_PAREN, 1) and (self._tokens.is_name() or word in _FUNCTIONS):
            return self._calls.call(begin)
        # RUNNING LAST(A.x), FINAL COUNT(*): measures of MATCH_RECOGNIZE
        if word in ("RUNNING", "FINAL") and self._tokens.is_name(1) and self._tokens.at(TokenType.L_PAREN, 2):
            self._tokens.advance()
            return self._tokens.spanned(
                begin, Semantics(this=self._calls.call(self._tokens.index), final=word == "FINAL")
            )
        # CURRENT_DATE
        if word in _NO_PARENTHESES and not self._tokens.at(TokenType.DOT, 1):
            self._tokens.advance()
            return self._tokens.spanned(begin, FunctionCall(this=word.lower(), expressions=[]))
        if not self._tokens.is_name():
            raise self._no_expression()
        return self._reference(begin)

    def _no_expression(self) -> PenstockError:
        word = self._tokens.word()
        if self._tokens.begins_query():
            hint = f"put it into parentheses of its own: ({word} ..)"
            return PenstockError(
                "SQL-1001",
                "a query is a value in parentheses only",
                span=self._tokens.current_span(),
                hint=hint,
                sqlstate="42601",
            )
        if word in RESERVED and word not in ("FROM", "WHERE", "GROUP", "HAVING", "LIMIT", "UNION"):
            return self._tokens.no_name("column")
        if self._tokens.at(TokenType.STAR):
            return PenstockError(
                "SQL-1001",
                "* means all columns only in the SELECT list and in COUNT(*)",
                span=self._tokens.current_span(),
                sqlstate="42601",
            )
        if word:
            return PenstockError(
                "SQL-1001",
                f"an expression is missing before {word}",
                span=self._tokens.current_span(),
                sqlstate="42601",
            )
        return self._tokens.unexpected("an expression")

    def _reference(self, begin: int) -> exp.Expr:
        # window.end is a path although END is reserved
        parts = [self._tokens.identifier("column")]
        while self._tokens.at(TokenType.DOT) and not self._tokens.at(TokenType.STAR, 1):
            self._tokens.advance()
            parts.append(
                self._end_of_window()
                if self._tokens.at_words("END") and parts[-1].name.lower() in _WINDOWS
                else self._tokens.identifier("column")
            )
            if len(parts) > MAX_DEPTH:
                raise too_deep(self._tokens.current_span())
        return self._tokens.spanned(begin, Reference(expressions=parts))

    def _end_of_window(self) -> exp.Identifier:
        begin = self._tokens.index
        self._tokens.advance()
        return self._tokens.spanned(begin, exp.Identifier(this="end", quoted=False))

    def _parenthesised(self, begin: int) -> exp.Expr:
        # a scalar subquery
        if self._tokens.begins_query():
            query = self._context.query()
            self._tokens.need(TokenType.R_PAREN, ")")
            return self._tokens.spanned(begin, exp.Subquery(this=query))
        # (a, b) is a row; (a) keeps its parentheses as a node
        node = self.scalar()
        if self._tokens.take(TokenType.COMMA):
            items = [node, *self._tokens.separated(self.scalar)]
            self._tokens.need(TokenType.R_PAREN, ")")
            return self._tokens.spanned(begin, exp.Tuple(expressions=items))
        self._tokens.need(TokenType.R_PAREN, ")")
        return self._tokens.spanned(begin, exp.Paren(this=node))

    def _case(self, begin: int) -> exp.Expr:
        self._tokens.advance()
        # CASE x WHEN 1 .. compares, CASE WHEN x = 1 .. tests
        operand = None if self._tokens.word() in ("WHEN", "ELSE", "END") else self.scalar()
        branches = []
        while self._tokens.take_words("WHEN"):
            condition = self.scalar()
            self._tokens.need_word("THEN")
            branches.append(exp.If(this=condition, true=self.scalar()))
        if not branches:
            raise self._tokens.unexpected("WHEN")
        default = self.scalar() if self._tokens.take_words("ELSE") else None
        if not self._tokens.take_words("END"):
            raise (
                self._tokens.unexpected("END")
                if default is not None
                else self._tokens.unexpected("WHEN", "ELSE", "END")
            )
        return self._tokens.spanned(begin, exp.Case(this=operand, ifs=branches, default=default))

    # select items

    def star(self) -> exp.Expr | None:
        """Return ``*`` or ``t.*`` with its EXCEPT list, or ``None`` when neither is next."""
        begin = self._tokens.index
        qualifier = None
        if (
            self._tokens.is_name()
            and self._tokens.at(TokenType.DOT, 1)
            and self._tokens.at(TokenType.STAR, 2)
        ):
            qualifier = self._tokens.identifier("table")
            self._tokens.advance()
        if not self._tokens.take(TokenType.STAR):
            return None
        hidden: list[exp.Identifier] = []
        if self._tokens.word() in ("EXCEPT", "EXCLUDE") and self._tokens.at(TokenType.L_PAREN, 1):
            self._tokens.advance(2)
            hidden = self._tokens.separated(lambda: self._tokens.identifier("column"))
            self._tokens.need(TokenType.R_PAREN, ")")
        elif self._tokens.word() in ("REPLACE", "RENAME") and self._tokens.at(TokenType.L_PAREN, 1):
            raise self._tokens.not_yet(f"* {self._tokens.word()}", "write the columns out")
        return self._tokens.spanned(begin, AllColumns(this=qualifier, except_=hidden))
