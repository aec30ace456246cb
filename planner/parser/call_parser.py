"""The grammar of calls: functions by name, CAST, and calls with words among their arguments, such as EXTRACT.

Lambda functions as arguments, ``x -> ..`` and ``(x, y) -> ..``, are read here too.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.types import DataType
from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.literal_parser import INTERVAL_UNITS
from penstock.planner.parser.over_clause_parser import OverParser
from penstock.planner.parser.syntax_nodes import AllColumns, CastTo, FunctionCall, LambdaFunction, RoundedTo
from penstock.planner.parser.type_parser import type_between


class LambdaParser(OverParser):
    """Parses the arguments of calls, lambda functions among them."""

    def argument(self) -> exp.Expr:
        """Return one argument: an expression or a lambda function."""
        begin = self._index
        # x -> ..
        if self.is_name() and self.at(TokenType.ARROW, 1):
            names = [self.identifier("parameter")]
        # (x, y) -> ..
        elif self._begins_parameters():
            self._advance()
            names = self.separated(lambda: self.identifier("parameter"))
            self._advance()
        else:
            return self.scalar()
        self._advance()
        self.enter()
        node = self.spanned(begin, LambdaFunction(this=self.scalar(), expressions=names))
        self.leave()
        return node

    def _begins_parameters(self) -> bool:
        if not self.at(TokenType.L_PAREN):
            return False
        ahead = 1
        while self.is_name(ahead) and self.at(TokenType.COMMA, ahead + 1):
            ahead += 2
        return (
            self.is_name(ahead)
            and self.at(TokenType.R_PAREN, ahead + 1)
            and self.at(TokenType.ARROW, ahead + 2)
        )

    def lists_arguments(self, ahead: int) -> bool:
        """Return whether the parenthesis ``ahead`` tokens on encloses a comma at its own nesting level."""
        depth = 0
        while (token := self.token(ahead)) is not None:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
            if depth <= 0 or (depth == 1 and token.token_type is TokenType.COMMA):
                return depth == 1
            ahead += 1
        return False


# functions whose first argument may be a bare unit of time: TIMESTAMPDIFF(DAY, a, b)
_UNIT_FIRST = frozenset(("TIMESTAMPDIFF", "TIMESTAMPADD", "DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF"))


class CallParser(LambdaParser):
    """Calls."""

    def cast(self, begin: int) -> exp.Expr:
        safe = self.word() == "TRY_CAST"
        self._advance(2)
        value = self.scalar()
        self.need_word("AS")
        # the type is everything up to CAST's closing parenthesis: DECIMAL(10, 2) nests one
        first, depth = self._index, 0
        while self._curr and not (depth == 0 and self.at(TokenType.R_PAREN)):
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._curr.token_type, 0)
            self._advance()
        if first == self._index:
            raise self.unexpected("a type")
        last = self._index
        self.need(TokenType.R_PAREN, ")")
        node = self.spanned(begin, CastTo(this=value, safe=safe))
        node.meta["sql_type"] = self._type_between(first, last)
        return node

    def cast_behind(self, begin: int, value: exp.Expr) -> exp.Expr:
        """Return the cast ``value::type``. The type is a word, then an optional ``<..>`` or ``(..)``, then an
        optional time zone clause.
        """
        first = self._index
        if not self.word() or self.word() in RESERVED - {"INTERVAL"}:
            raise self.unexpected("a type")
        self._advance()
        # ARRAY<..>, then DECIMAL(..) or ROW(..)
        for left, right in ((TokenType.LT, TokenType.GT), (TokenType.L_PAREN, TokenType.R_PAREN)):
            if self.at(left):
                self._pass_nested(left, right)
        for words in (("WITH", "LOCAL", "TIME", "ZONE"), ("WITHOUT", "TIME", "ZONE")):
            self.take_words(*words)
        node = self.spanned(begin, CastTo(this=value, safe=False))
        node.meta["sql_type"] = self._type_between(first, self._index)
        return node

    def _type_between(self, first: int, last: int) -> DataType:
        """Return the type written in the tokens from index ``first`` up to ``last`` (exclusive)."""
        return type_between(self.sql, self._tokens[first:last], self._tokens[last - 1].end + 1)

    def _pass_nested(self, left: TokenType, right: TokenType) -> None:
        depth = 0
        while self._curr:
            kind = self._curr.token_type
            depth += (kind is left) - (kind is right)
            self._advance()
            if depth <= 0:
                return

    def call(self, begin: int) -> exp.Expr:
        name = self._curr.text
        upper = self.word()
        self._advance(2)
        # EXTRACT, TRIM, .. unless they are written like any function
        special = self._special(upper)
        if special is not None and (node := special(begin)) is not None:
            return node
        # f([DISTINCT | ALL] ..), f(*), f(A.*), f(a, b ORDER BY c)
        distinct = self.take_words("DISTINCT")
        if not distinct:
            self.take_words("ALL")
        star = self.at(TokenType.STAR) and self.at(TokenType.R_PAREN, 1)
        if star:
            self._advance()
        if (rows := self._rows_of_variable()) is not None:
            return self._after_call(begin, FunctionCall(this=name, expressions=[rows], distinct=distinct))
        args = [] if star or (self.at(TokenType.R_PAREN) and not distinct) else self._arguments(upper)
        order = self._sort_items() if args and self.at_words("ORDER", "BY") else []
        self.need(TokenType.R_PAREN, ")")
        node = FunctionCall(this=name, expressions=args, distinct=distinct, star=star, order=order)
        return self._after_call(begin, node)

    def _special(self, word: str) -> Callable[[int], exp.Expr | None] | None:
        """Return the parser of a call with words among its arguments, or ``None`` for an ordinary function.
        Such a parser may return ``None`` without reading a token; the call is then an ordinary one.
        """
        return {
            "EXTRACT": self._extract,
            "SUBSTRING": self._substring,
            "TRIM": self._trim,
            "POSITION": self._position,
            "OVERLAY": self._overlay,
            "JSON_OBJECT": self._json_object,
            "JSON_ARRAY": self._json_array,
            "FLOOR": self._rounded,
            "CEIL": self._rounded,
            "CEILING": self._rounded,
        }.get(word)

    def _rows_of_variable(self) -> exp.Expr | None:
        """Return the ``A.*`` of ``COUNT(A.*)`` and consume its closing parenthesis. Return ``None`` for other
        arguments.
        """
        begin = self._index
        if not (
            self.is_name()
            and self.at(TokenType.DOT, 1)
            and self.at(TokenType.STAR, 2)
            and self.at(TokenType.R_PAREN, 3)
        ):
            return None
        node = AllColumns(this=self.identifier("row variable"))
        self._advance(2)
        rows = self.spanned(begin, node)
        self._advance()
        return rows

    def _arguments(self, function: str) -> list[exp.Expr]:
        # a bare unit becomes a string, so that TIMESTAMPDIFF(DAY, ..) is an ordinary call
        args: list[exp.Expr] = []
        if function in _UNIT_FIRST and self.word() in INTERVAL_UNITS and self.at(TokenType.COMMA, 1):
            args.append(self.unit_as_string())
            self.need(TokenType.COMMA, ",")
        return args + self.separated(self.argument)

    def _sort_items(self) -> list[exp.Expr]:
        self._advance(2)
        return self.separated(self.sort_item)

    def _after_call(self, begin: int, node: FunctionCall) -> exp.Expr:
        # IGNORE NULLS may precede WITHIN GROUP and FILTER, or follow them
        self._ignored_nulls(node)
        if self.take_words("WITHIN", "GROUP"):
            self.need(TokenType.L_PAREN, "(")
            if not self.at_words("ORDER", "BY"):
                raise self.unexpected("ORDER BY")
            node.set("within", self._sort_items())
            self.need(TokenType.R_PAREN, ")")
        if self.at_words("FILTER") and self.at(TokenType.L_PAREN, 1):
            self._advance(2)
            self.need_word("WHERE")
            node.set("filter", self.scalar())
            self.need(TokenType.R_PAREN, ")")
        self._ignored_nulls(node)
        if self.at_words("OVER"):
            node.set("over", self.over())
        return self.spanned(begin, node)

    def _ignored_nulls(self, node: FunctionCall) -> None:
        if self.at_words("IGNORE", "NULLS") or self.at_words("RESPECT", "NULLS"):
            node.set("nulls", self.word())
            self._advance(2)

    def _extract(self, begin: int) -> exp.Expr | None:
        if self.word(1) != "FROM":
            return None
        unit = self.unit_as_string()
        self._advance()
        return self._finish(begin, "extract", [unit, self.scalar()])

    def _substring(self, begin: int) -> exp.Expr | None:
        args = [self.scalar()]
        if self.take_words("FROM"):
            args.append(self.scalar())
            if self.take_words("FOR"):
                args.append(self.scalar())
        elif self.take(TokenType.COMMA):
            args += self.separated(self.scalar)
        return self._finish(begin, "substring", args)

    def _position(self, begin: int) -> exp.Expr | None:
        args = [self.operand()]
        if self.take_words("IN"):
            args.append(self.operand())
        elif self.take(TokenType.COMMA):
            args += self.separated(self.scalar)
        return self._finish(begin, "position", args)

    def _trim(self, begin: int) -> exp.Expr | None:
        # TRIM(BOTH FROM x), TRIM(LEADING ' ' FROM x), TRIM(x), TRIM(x, y); a column may be called leading
        side = (
            self.word()
            if self.word() in ("BOTH", "LEADING", "TRAILING") and not self.at(TokenType.R_PAREN, 1)
            else ""
        )
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
        if side:
            self._advance()
        if side and self.take_words("FROM"):
            return self._finish(begin, name, [self.scalar()])
        first = self.scalar()
        if self.take_words("FROM"):
            return self._finish(begin, name, [self.scalar(), first])
        more = self.separated(self.scalar) if self.take(TokenType.COMMA) else []
        return self._finish(begin, name, [first, *more])

    def _overlay(self, begin: int) -> exp.Expr | None:
        args = [self.scalar()]
        if self.take_words("PLACING"):
            args.append(self.scalar())
            self.need_word("FROM")
            args.append(self.scalar())
            if self.take_words("FOR"):
                args.append(self.scalar())
        elif self.take(TokenType.COMMA):
            args += self.separated(self.scalar)
        return self._finish(begin, "overlay", args)

    def _rounded(self, begin: int) -> exp.Expr | None:
        """Parse ``FLOOR(x TO unit)`` on a time, or ``FLOOR(x, ..)`` on a number."""
        if self.at(TokenType.R_PAREN):
            return None
        name = self._tokens[begin].text
        args = self.separated(self.scalar)
        if len(args) == 1 and self.take_words("TO"):
            unit = self.unit_as_string()
            self.need(TokenType.R_PAREN, ")")
            return self.spanned(begin, RoundedTo(this=args[0], unit=unit, up=name.upper() != "FLOOR"))
        return self._finish(begin, name, args)

    def _json_object(self, begin: int) -> exp.Expr:
        """Parse keys and values: ``KEY k VALUE v``, ``k VALUE v``, ``k : v`` or ``k, v``."""
        fields = [] if self._ends_json() else self.separated(self._json_field)
        return self._json(begin, "json_object", [part for field in fields for part in field])

    def _json_field(self) -> tuple[exp.Expr, exp.Expr]:
        # KEY is a word only before a key: in KEY VALUE 1, KEY : 1 and KEY, 1 it is a column
        if (
            self.at_words("KEY")
            and self.word(1) != "VALUE"
            and not self.at(TokenType.COMMA, 1)
            and not self.at(TokenType.COLON, 1)
        ):
            self._advance()
        key = self.scalar()
        if not self.take_words("VALUE") and not self.take(TokenType.COLON) and not self.take(TokenType.COMMA):
            raise self.unexpected("VALUE", ":", ",")
        return key, self.scalar()

    def _json_array(self, begin: int) -> exp.Expr:
        return self._json(begin, "json_array", [] if self._ends_json() else self.separated(self.scalar))

    def _ends_json(self) -> bool:
        return (
            self.at(TokenType.R_PAREN)
            or self.at_words("NULL", "ON", "NULL")
            or self.at_words("ABSENT", "ON", "NULL")
        )

    def _json(self, begin: int, name: str, items: list[exp.Expr]) -> exp.Expr:
        nulls = self.word() if not self.at(TokenType.R_PAREN) and self._ends_json() else None
        if nulls:
            self._advance(3)
        self.need(TokenType.R_PAREN, ")")
        return self.spanned(begin, FunctionCall(this=name, expressions=items, nulls=nulls))

    def _finish(self, begin: int, name: str, args: list[exp.Expr]) -> exp.Expr:
        self.need(TokenType.R_PAREN, ")")
        return self.spanned(begin, FunctionCall(this=name, expressions=args))
