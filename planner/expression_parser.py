"""The grammar of scalar expressions: Spark's precedence, sqlglot's nodes, a place for every node."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.errors import PenstockError
from penstock.planner.keywords import RESERVED
from penstock.planner.lexical import MAX_DEPTH, too_deep
from penstock.planner.match_syntax import Semantics
from penstock.planner.predicate_parser import TESTS, PredicateParser
from penstock.planner.syntax import AllColumns, FunctionCall, Reference, balanced

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
_NO_PARENTHESES = frozenset(("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP", "LOCALTIME"))


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
        node = self.placed(begin, exp.Not(this=self._not()))
        self.leave()
        return node

    # predicates

    def _predicate(self) -> exp.Expr:
        begin = self._index
        if self.at_words("EXISTS") and self.at(TokenType.L_PAREN, 1):
            if not self.begins_query(2) and self.lists_arguments(1):
                return self._postfix(begin, self.call(begin))
            self._advance()
            return self.placed(begin, exp.Exists(this=self.subquery()))
        node = self._binary(1)
        while True:
            negated = self.word() == "NOT" and self.word(1) in TESTS
            word = self.word(1) if negated else self.word()
            if word not in TESTS and word != "IS":
                return node
            self.count_operator()
            self._advance(2 if negated else 1)
            node = self.placed(begin, self.test(word, node, negated))

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
                raise too_deep(self.here())
            self._advance()
            compared = self.quantified(kind, left)
            left = self.placed(begin, compared or kind(this=left, expression=self._binary(precedence + 1)))
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
                node = self.placed(begin, kind(this=self._unary()))
                self.leave()
                return node
        return self._postfix(begin, self._primary())

    def _postfix(self, begin: int, node: exp.Expr) -> exp.Expr:
        steps = 0
        while True:
            if self.take(TokenType.DOT):
                node = self.placed(begin, exp.Dot(this=node, expression=self.identifier("field name")))
            elif self.take(TokenType.L_BRACKET):
                index = self.scalar()
                self.need(TokenType.R_BRACKET, "]")
                node = self.placed(begin, exp.Bracket(this=node, expressions=[index]))
            elif self.take(TokenType.DCOLON):
                node = self.cast_behind(begin, node)
            elif self.take_words("AT", "TIME", "ZONE"):
                node = self.placed(begin, FunctionCall(this="at_time_zone", expressions=[node, self._primary()]))
            elif self.at_words("COLLATE"):
                raise self.not_yet("COLLATE", "compare lower(..) of both sides")
            else:
                return node
            steps += 1
            if steps > MAX_DEPTH:
                raise too_deep(self.here())

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
            return self.placed(begin, FunctionCall(this=word.lower(), expressions=items))
        if word in ("ARRAY", "MULTISET") and self.at(TokenType.L_PAREN, 1) and self.begins_query(2):
            raise self.not_yet(f"{word}(SELECT ..)", "write (SELECT collect_list(v) FROM ..), which leaves NULLs out")
        if self.at(TokenType.L_PAREN, 1) and (self.is_name() or word in _FUNCTIONS):
            return self.call(begin)
        if word in ("RUNNING", "FINAL") and self.is_name(1) and self.at(TokenType.L_PAREN, 2):
            self._advance()
            return self.placed(begin, Semantics(this=self.call(self._index), final=word == "FINAL"))
        if word in _NO_PARENTHESES and not self.at(TokenType.DOT, 1):
            self._advance()
            return self.placed(begin, FunctionCall(this=word.lower(), expressions=[]))
        if not self.is_name():
            raise self._no_expression()
        return self._reference(begin)

    def _no_expression(self) -> PenstockError:
        word = self.word()
        if self.begins_query():
            hint = f"put it into parentheses of its own: ({word} ..)"
            return PenstockError("SQL-1001", "a query is a value in parentheses only", span=self.here(), hint=hint, sqlstate="42601")
        if word in RESERVED and word not in ("FROM", "WHERE", "GROUP", "HAVING", "LIMIT", "UNION"):
            return self.no_name("column")
        if self.at(TokenType.STAR):
            return PenstockError("SQL-1001", "* stands for all columns only in the SELECT list and in COUNT(*)", span=self.here(), sqlstate="42601")
        if word:
            return PenstockError("SQL-1001", f"an expression is missing before {word}", span=self.here(), sqlstate="42601")
        return self.unexpected("an expression")

    def _reference(self, begin: int) -> exp.Expr:
        parts = [self.identifier("column")]
        while self.at(TokenType.DOT) and not self.at(TokenType.STAR, 1):
            self._advance()
            parts.append(self._end_of_window() if self.at_words("END") and parts[-1].name.lower() in _WINDOWS else self.identifier("column"))
            if len(parts) > MAX_DEPTH:
                raise too_deep(self.here())
        return self.placed(begin, Reference(expressions=parts))

    def _end_of_window(self) -> exp.Identifier:
        begin = self._index
        self._advance()
        return self.placed(begin, exp.Identifier(this="end", quoted=False))

    def _parenthesised(self, begin: int) -> exp.Expr:
        if self.begins_query():
            query = self.query()
            self.need(TokenType.R_PAREN, ")")
            return self.placed(begin, exp.Subquery(this=query))
        node = self.scalar()
        if self.take(TokenType.COMMA):
            items = [node, *self.separated(self.scalar)]
            self.need(TokenType.R_PAREN, ")")
            return self.placed(begin, exp.Tuple(expressions=items))
        self.need(TokenType.R_PAREN, ")")
        return self.placed(begin, exp.Paren(this=node))

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
        return self.placed(begin, exp.Case(this=operand, ifs=branches, default=default))

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
        return self.placed(begin, AllColumns(this=qualifier, except_=hidden))
