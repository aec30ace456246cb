"""The grammar of scalar expressions: Spark's operator precedence and sqlglot's nodes. Every node gets its
span in the text.
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
from penstock.planner.parser.predicate_parser import TESTS, PredicateParser
from penstock.planner.parser.scanner import MAX_DEPTH, too_deep
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    ArrayOf,
    FunctionCall,
    Reference,
    Semantics,
    UnsignedRightShift,
    balanced,
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
    # 5 are the shifts
    TokenType.PLUS: (6, exp.Add),
    TokenType.DASH: (6, exp.Sub),
    TokenType.DPIPE: (6, exp.DPipe),
    TokenType.STAR: (7, exp.Mul),
    TokenType.SLASH: (7, exp.Div),
    TokenType.MOD: (7, exp.Mod),
}
# the signs of a shift are tokens of their own, as those that close ARRAY<ARRAY<INT>> are
_SHIFTS: tuple[tuple[tuple[TokenType, ...], type[exp.Expr]], ...] = (
    ((TokenType.GT,) * 3, UnsignedRightShift),
    ((TokenType.GT,) * 2, exp.BitwiseRightShift),
    ((TokenType.LT,) * 2, exp.BitwiseLeftShift),
)
_WINDOWS = ("window", "session_window")
_UNARY = {TokenType.DASH: exp.Neg, TokenType.TILDE: exp.BitwiseNot}
_FUNCTIONS = ("LEFT", "RIGHT", "WINDOW", "LIKE", "RLIKE")
"""Reserved words that are functions where a parenthesis follows."""
_NO_PARENTHESES = frozenset(
    ("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP", "LOCALTIME")
)


def _quoted_step(name: str) -> str:
    quote = '"' if "'" in name else "'"
    return f"[{quote}{name}{quote}]"


_OF_TEXT = ((TokenType.ARROW, TokenType.GT), (TokenType.HASH, TokenType.GT, TokenType.GT))
"""PostgreSQL's ``->>`` and ``#>>``, which give texts."""
_JSON_MEMBERS = (*_OF_TEXT, (TokenType.ARROW,), (TokenType.HASH, TokenType.GT))


class ExpressionParser:
    """Parses scalar expressions by precedence climbing."""

    def __init__(self, context: ParserContext, literals: LiteralParser, over: OverParser) -> None:
        self._context, self._tokens = context, context.tokens
        self._literals = literals
        self._calls = CallParser(context, literals, over)
        self._predicates = PredicateParser(context, literals)
        # the rules that the levels below call upward
        context.scalar, context.operand, context.key = self.scalar, self.operand, self.key
        context.star = self.star
        # k:v of MAP and JSON_OBJECT: the colon ends the key
        self._before_colon = False

    def scalar(self) -> exp.Expr:
        """Return one expression: OR of ANDs of conditions."""
        self._tokens.enter()
        node = self._connected("OR", exp.Or, self._and)
        self._tokens.leave()
        return node

    def key(self) -> exp.Expr:
        """Return the expression before a colon, which begins no path of a VARIANT."""
        around, self._before_colon = self._before_colon, True
        node = self.scalar()
        self._before_colon = around
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
        # ! is NOT
        if not self._tokens.take_words("NOT") and not self._tokens.take(TokenType.NOT):
            return self._predicate()
        self._tokens.enter()
        node = self._tokens.spanned(begin, exp.Not(this=self._not()))
        self._tokens.leave()
        return node

    # predicates

    def _predicate(self) -> exp.Expr:
        begin = self._tokens.index
        # UNIQUE (SELECT ..)
        if (
            self._tokens.at_words("UNIQUE")
            and self._tokens.at(TokenType.L_PAREN, 1)
            and self._tokens.begins_query(2)
        ):
            return self._predicates.unique(begin)
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
            precedence, kind, signs = operator
            chain += 1
            self._tokens.count_operator()
            # a chain is a tree as deep as it is long; chains of || are the exception
            if chain > MAX_DEPTH and kind is not exp.DPipe:
                raise too_deep(self._tokens.current_span())
            self._tokens.advance(signs)
            compared = self._predicates.quantified(kind, left)
            left = self._tokens.spanned(
                begin, compared or kind(this=left, expression=self._binary(precedence + 1))
            )
        return left

    def _operator(self) -> tuple[int, type[exp.Expr], int] | None:
        """Return the precedence, the node and the number of tokens of the operator at the current token."""
        if self._tokens.word() == "DIV":
            return 7, exp.IntDiv, 1
        token = self._tokens.token()
        if token is None or (found := BINARY.get(token.token_type)) is None:
            return None
        # a |> WHERE b: the next operator of a pipe
        if self._tokens.touching(TokenType.PIPE, TokenType.GT):
            return None
        if token.token_type in (TokenType.LT, TokenType.GT):
            for signs, kind in _SHIFTS:
                if self._tokens.touching(*signs):
                    return 5, kind, len(signs)
        return *found, 1

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
            # variant:name.name[0]
            elif self._at_variant_path(node):
                self._tokens.advance()
                node = self._tokens.spanned(
                    begin, FunctionCall(this="variant_get", expressions=[node, self._variant_path()])
                )
            # json -> 'a', json ->> 0, json #>> '{a,b}'
            elif (member := self._json_member(begin, node)) is not None:
                node = member
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

    def _at_variant_path(self, node: exp.Expr) -> bool:
        """Whether a colon that touches both its sides follows a name, a field or an element. A colon between
        a key and its value stands apart, or behind a constant.
        """
        left, right = self._tokens.previous, self._tokens.token(1)
        colon = self._tokens.token()
        return (
            self._tokens.at(TokenType.COLON)
            and not self._before_colon
            and not isinstance(node, exp.Literal)
            and right is not None
            and colon is not None
            and left.end + 1 == colon.start
            and colon.end + 1 == right.start
        )

    def _variant_path(self) -> exp.Expr:
        """Return the path behind the colon as the text ``$['a']['b'][0]``, in which names keep their case."""
        begin, path = self._tokens.index, "$"
        while True:
            if not self._tokens.at(TokenType.L_BRACKET):
                path += _quoted_step(self._tokens.identifier("name of a field").name)
            elif self._tokens.take(TokenType.L_BRACKET):
                path += self._variant_step()
            if self._tokens.at(TokenType.L_BRACKET):
                continue
            if not self._tokens.take(TokenType.DOT):
                return self._tokens.spanned(begin, exp.Literal.string(path))

    def _variant_step(self) -> str:
        step = self._literals.literal()
        if not isinstance(step, exp.Literal) or (not step.is_string and not step.name.isdigit()):
            raise self._tokens.not_yet("a step that is no constant", "write v:a[0] or v:a['name']")
        self._tokens.need(TokenType.R_BRACKET, "]")
        return _quoted_step(step.name) if step.is_string else f"[{step.name}]"

    def _json_member(self, begin: int, node: exp.Expr) -> exp.Expr | None:
        """Return the member of a JSON text behind PostgreSQL's operators, or ``None`` where none is next.
        ``a -> 'b' ->> 0`` is one path: ``json_extract_path_text(a, 'b', 0)``.
        """
        signs = next((signs for signs in _JSON_MEMBERS if self._tokens.touching(*signs)), None)
        if signs is None:
            return None
        self._tokens.advance(len(signs))
        name = "json_extract_path_text" if signs in _OF_TEXT else "json_extract_path"
        if signs[0] is TokenType.HASH:
            keys = self._json_path()
        else:
            keys = [self._unary() if self._tokens.at(TokenType.DASH) else self._primary()]
        args = [node, *keys]
        if isinstance(node, FunctionCall) and node.meta.get("json_member"):
            args = [*node.expressions, *keys]
        member = self._tokens.spanned(begin, FunctionCall(this=name, expressions=args))
        # of -> only: ->> is a text, and no JSON any more
        member.meta["json_member"] = name == "json_extract_path"
        return member

    def _json_path(self) -> list[exp.Expr]:
        begin = self._tokens.index
        path = (
            self._literals.string("a path such as '{a,b}'").name.strip().removeprefix("{").removesuffix("}")
        )
        return [
            self._tokens.spanned(
                begin, exp.Literal.number(step) if step.isdigit() else exp.Literal.string(step)
            )
            for step in (part.strip().strip('"') for part in path.split(","))
        ]

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
        # [1, 2] and {'a': 1}
        if self._tokens.at(TokenType.L_BRACKET) or self._tokens.at(TokenType.L_BRACE):
            return self._calls.collected(begin)
        word = self._tokens.word()
        if word == "CASE":
            return self._case(begin)
        if word in ("CAST", "TRY_CAST", "SAFE_CAST") and self._tokens.at(TokenType.L_PAREN, 1):
            return self._calls.cast(begin)
        # ARRAY[1, 2], MAP['a', 1], MAP {'a': 1}
        if (word in ("ARRAY", "MAP") and self._tokens.at(TokenType.L_BRACKET, 1)) or (
            word == "MAP" and self._tokens.at(TokenType.L_BRACE, 1)
        ):
            self._tokens.advance()
            return self._calls.collected(begin, word.lower())
        # ARRAY(SELECT ..)
        if (
            word in ("ARRAY", "MULTISET")
            and self._tokens.at(TokenType.L_PAREN, 1)
            and self._tokens.begins_query(2)
        ):
            if word == "MULTISET":
                raise self._tokens.not_yet("MULTISET(SELECT ..)", "write ARRAY(SELECT ..)")
            self._tokens.advance()
            return self._tokens.spanned(begin, ArrayOf(query=self._predicates.subquery()))
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
        if self._tokens.begins_query() and not self._tokens.at_words("FROM"):
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
            # CASE x WHEN 1, 2 THEN .. has a branch for each value
            conditions = self._tokens.separated(self.scalar) if operand is not None else [self.scalar()]
            self._tokens.need_word("THEN")
            value = self.scalar()
            branches += [exp.If(this=condition, true=value.copy()) for condition in conditions]
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
        """Return ``*``, ``t.*`` or ``t.row.*`` with its EXCEPT and REPLACE lists, or ``None`` when none is
        next.
        """
        begin = self._tokens.index
        # over the names and dots to a star behind a dot
        dots = 0
        while self._tokens.is_name(2 * dots) and self._tokens.at(TokenType.DOT, 2 * dots + 1):
            dots += 1
        if not self._tokens.at(TokenType.STAR, 2 * dots):
            return None
        names = []
        for _ in range(dots):
            names.append(self._tokens.identifier("table"))
            self._tokens.advance()
        path = self._tokens.spanned(begin, Reference(expressions=names)) if dots > 1 else None
        self._tokens.advance()
        node = AllColumns(this=names[-1] if names else None, path=path, except_=[], replace=[], rename=[])
        while self._tokens.at(TokenType.L_PAREN, 1):
            if self._tokens.word() in ("EXCEPT", "EXCLUDE"):
                self._tokens.advance(2)
                node.set("except_", self._tokens.separated(lambda: self._tokens.identifier("column")))
            elif self._tokens.word() == "REPLACE":
                self._tokens.advance(2)
                node.set("replace", self._tokens.separated(self._replaced))
            elif self._tokens.word() == "RENAME":
                self._tokens.advance(2)
                node.set("rename", self._tokens.separated(self._renamed))
            else:
                break
            self._tokens.need(TokenType.R_PAREN, ")")
        return self._tokens.spanned(begin, node)

    def _renamed(self) -> exp.Expr:
        begin = self._tokens.index
        old = self._tokens.identifier("column")
        self._tokens.need_word("AS")
        return self._tokens.spanned(begin, exp.Alias(this=old, alias=self._tokens.identifier("column")))

    def _replaced(self) -> exp.Expr:
        begin = self._tokens.index
        value = self.scalar()
        self._tokens.need_word("AS")
        return self._tokens.spanned(begin, exp.Alias(this=value, alias=self._tokens.identifier("column")))
