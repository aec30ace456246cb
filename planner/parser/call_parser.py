"""The grammar of calls: functions by name, CAST, and calls with words among their arguments, such as EXTRACT.

Lambda functions as arguments, ``x -> ..`` and ``(x, y) -> ..``, are read here too.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.catalog.types import DataType
from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.literal_parser import INTERVAL_UNITS, LiteralParser
from penstock.planner.parser.over_clause_parser import OverParser
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    CastTo,
    FunctionCall,
    LambdaFunction,
    RoundedTo,
    TypedLiteral,
)
from penstock.planner.parser.type_parser import type_between

# functions whose first argument may be a bare unit of time: TIMESTAMPDIFF(DAY, a, b)
_UNIT_FIRST = frozenset(("TIMESTAMPDIFF", "TIMESTAMPADD", "DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF"))

_NAMING = ("STRUCT", "ROW")
"""Functions whose arguments may be named: struct(a AS b)."""

_ESCAPED = {"D": "DATE", "T": "TIME", "TS": "TIMESTAMP"}
"""The types of JDBC's escapes."""


_OF_JSON_VALUE = ("RETURNING", "NULL", "DEFAULT", "ERROR")
"""Words that begin a clause of JSON_VALUE, behind its path."""


class CallParser:
    """Parses calls and their arguments, lambda functions among them."""

    def __init__(self, context: ParserContext, literals: LiteralParser, over: OverParser) -> None:
        # the context reaches whole expressions, which arguments contain
        self._context, self._tokens = context, context.tokens
        self._literals, self._over = literals, over

    def _argument(self) -> exp.Expr:
        """Return one argument: an expression or a lambda function."""
        begin = self._tokens.index
        # x -> ..; x -> 'a' -> 'b' is a member of JSON
        if (
            self._tokens.is_name()
            and self._tokens.at(TokenType.ARROW, 1)
            and not self._tokens.at(TokenType.GT, 2)
            and not self._continues_a_path()
        ):
            names = [self._tokens.identifier("parameter")]
        # (x, y) -> ..
        elif self._begins_parameters():
            self._tokens.advance()
            names = self._tokens.separated(lambda: self._tokens.identifier("parameter"))
            self._tokens.advance()
        else:
            return self._context.scalar()
        self._tokens.advance()
        # a body may have a call with a lambda function again: x -> transform(a, y -> ..)
        self._tokens.enter()
        node = self._tokens.spanned(begin, LambdaFunction(this=self._context.scalar(), expressions=names))
        self._tokens.leave()
        return node

    def _continues_a_path(self) -> bool:
        # s -> 'a' -> .., where x -> x -> .. has a name
        constant = self._tokens.at(TokenType.STRING, 2) or self._tokens.at(TokenType.NUMBER, 2)
        return constant and self._tokens.at(TokenType.ARROW, 3)

    def _begins_parameters(self) -> bool:
        if not self._tokens.at(TokenType.L_PAREN):
            return False
        # over the names and commas between the parentheses, to `) ->`
        ahead = 1
        while self._tokens.is_name(ahead) and self._tokens.at(TokenType.COMMA, ahead + 1):
            ahead += 2
        return (
            self._tokens.is_name(ahead)
            and self._tokens.at(TokenType.R_PAREN, ahead + 1)
            and self._tokens.at(TokenType.ARROW, ahead + 2)
        )

    def lists_arguments(self, ahead: int) -> bool:
        """Return whether the parenthesis ``ahead`` tokens on encloses a comma at its own nesting level."""
        depth = 0
        while (token := self._tokens.token(ahead)) is not None:
            # a comma at depth 1 separates arguments; depth 0 is the end of the list
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
            if depth <= 0 or (depth == 1 and token.token_type is TokenType.COMMA):
                return depth == 1
            ahead += 1
        return False

    def cast(self, begin: int) -> exp.Expr:
        # CAST(value AS type), TRY_CAST(value AS type), SAFE_CAST(value AS type)
        safe = self._tokens.word() != "CAST"
        self._tokens.advance(2)
        value = self._context.scalar()
        self._tokens.need_word("AS")
        # the type is everything up to CAST's closing parenthesis: DECIMAL(10, 2) nests one
        first, depth = self._tokens.index, 0
        while self._tokens.current and not (depth == 0 and self._tokens.at(TokenType.R_PAREN)):
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._tokens.current.token_type, 0)
            self._tokens.advance()
        if first == self._tokens.index:
            raise self._tokens.unexpected("a type")
        last = self._tokens.index
        self._tokens.need(TokenType.R_PAREN, ")")
        node = self._tokens.spanned(begin, CastTo(this=value, safe=safe))
        # read only behind the closing parenthesis: a syntax error of the call comes before one of the type
        node.meta["sql_type"] = self._type_between(first, last)
        node.meta["interval_units"] = self._interval_units(first, last)
        return node

    def cast_behind(self, begin: int, value: exp.Expr) -> exp.Expr:
        """Return the cast ``value::type``. The type is a word, then an optional ``<..>`` or ``(..)``, then an
        optional time zone clause.
        """
        first = self._tokens.index
        if not self._tokens.word() or self._tokens.word() in RESERVED - {"INTERVAL"}:
            raise self._tokens.unexpected("a type")
        self._tokens.advance()
        # ARRAY<..>, then DECIMAL(..) or ROW(..)
        for left, right in ((TokenType.LT, TokenType.GT), (TokenType.L_PAREN, TokenType.R_PAREN)):
            if self._tokens.at(left):
                self._pass_nested(left, right)
        # TIMESTAMP WITH LOCAL TIME ZONE; the words are in the tokens of the type, which are read again below
        for words in (("WITH", "LOCAL", "TIME", "ZONE"), ("WITHOUT", "TIME", "ZONE")):
            self._tokens.take_words(*words)
        node = self._tokens.spanned(begin, CastTo(this=value, safe=False))
        node.meta["sql_type"] = self._type_between(first, self._tokens.index)
        node.meta["interval_units"] = self._interval_units(first, self._tokens.index)
        return node

    def _interval_units(self, first: int, last: int) -> tuple[str, ...]:
        """Return the first and the last unit of an INTERVAL in these tokens, nothing for another type."""
        words = [token.text.upper() for token in self._tokens.sequence[first:last] if token.text.isalpha()]
        return tuple(word for word in words[1:] if word != "TO") if words[:1] == ["INTERVAL"] else ()

    def _type_between(self, first: int, last: int) -> DataType:
        """Return the type written in the tokens from index ``first`` up to ``last`` (exclusive)."""
        return type_between(
            self._tokens.text, self._tokens.sequence[first:last], self._tokens.sequence[last - 1].end + 1
        )

    def _pass_nested(self, left: TokenType, right: TokenType) -> None:
        depth = 0
        # up to the bracket that closes the first one
        while self._tokens.current:
            kind = self._tokens.current.token_type
            depth += (kind is left) - (kind is right)
            self._tokens.advance()
            if depth <= 0:
                return

    def call(self, begin: int) -> exp.Expr:
        # the node has the name as written; a name with a grammar of its own is recognised in upper case
        name = self._tokens.current.text
        upper = self._tokens.word()
        self._tokens.advance(2)
        # EXTRACT, TRIM, .. unless they are written like any function
        special = self._special(upper)
        if special is not None and (node := special(begin)) is not None:
            return node
        # f([DISTINCT | ALL] ..), f(*), f(A.*), f(a, b ORDER BY c)
        distinct = self._tokens.take_words("DISTINCT")
        if not distinct:
            self._tokens.take_words("ALL")
        # COUNT(*) has no arguments
        star = self._tokens.at(TokenType.STAR) and self._tokens.at(TokenType.R_PAREN, 1)
        if star:
            self._tokens.advance()
        if (rows := self._rows_of_variable()) is not None:
            return self._after_call(begin, FunctionCall(this=name, expressions=[rows], distinct=distinct))
        args = [] if star or (self._tokens.at(TokenType.R_PAREN) and not distinct) else self._arguments(upper)
        # listagg(a, ',' ORDER BY b)
        order = self._sort_items() if args and self._tokens.at_words("ORDER", "BY") else []
        node = FunctionCall(this=name, expressions=args, distinct=distinct, star=star, order=order)
        # first(x IGNORE NULLS)
        self._ignored_nulls(node)
        if upper == "JSON_VALUE" and self._tokens.word() in _OF_JSON_VALUE:
            return self._json_value(begin, node)
        self._tokens.need(TokenType.R_PAREN, ")")
        return self._after_call(begin, node)

    def _special(self, word: str) -> Callable[[int], exp.Expr | None] | None:
        """Return the parser of a call with words among its arguments, or ``None`` for an ordinary function.
        Such a parser may return ``None`` without reading a token; the call is then an ordinary one.
        """
        # FLOOR and CEIL are special for FLOOR(time TO unit) only
        return {
            "EXTRACT": self._extract,
            "SUBSTRING": self._substring,
            "TRIM": self._trim,
            "POSITION": self._position,
            "OVERLAY": self._overlay,
            "WINDOW_TIME": self._window_time,
            "JSON_OBJECT": self._json_object,
            "JSON_ARRAY": self._json_array,
            "JSON_OBJECTAGG": self._json_objectagg,
            "JSON_ARRAYAGG": self._json_arrayagg,
            "FLOOR": self._rounded,
            "CEIL": self._rounded,
            "CEILING": self._rounded,
        }.get(word)

    def _window_time(self, begin: int) -> exp.Expr | None:
        # Spark: window_time(window), of the window in GROUP BY; WINDOW is a reserved word elsewhere
        if not (self._tokens.at_words("WINDOW") and self._tokens.at(TokenType.R_PAREN, 1)):
            return None
        self._tokens.advance(2)
        return self._tokens.spanned(begin, FunctionCall(this="window_time", expressions=[]))

    def _rows_of_variable(self) -> exp.Expr | None:
        """Return the ``A.*`` of ``COUNT(A.*)`` and consume its closing parenthesis. Return ``None`` for other
        arguments.
        """
        begin = self._tokens.index
        if not (
            self._tokens.is_name()
            and self._tokens.at(TokenType.DOT, 1)
            and self._tokens.at(TokenType.STAR, 2)
            and self._tokens.at(TokenType.R_PAREN, 3)
        ):
            return None
        node = AllColumns(this=self._tokens.identifier("row variable"))
        self._tokens.advance(2)
        rows = self._tokens.spanned(begin, node)
        self._tokens.advance()
        return rows

    def _arguments(self, function: str) -> list[exp.Expr]:
        # a bare unit becomes a string, so that TIMESTAMPDIFF(DAY, ..) is an ordinary call
        args: list[exp.Expr] = []
        if (
            function in _UNIT_FIRST
            and self._tokens.word() in INTERVAL_UNITS
            and self._tokens.at(TokenType.COMMA, 1)
        ):
            args.append(self._literals.unit_as_string())
            self._tokens.need(TokenType.COMMA, ",")
        # COLUMNS(* EXCLUDE (a, b))
        if function == "COLUMNS" and (every := self._context.star()) is not None:
            return [every]
        return args + self._tokens.separated(self._field if function in _NAMING else self._argument)

    def _field(self) -> exp.Expr:
        # struct(a + 1 AS b)
        begin = self._tokens.index
        value = self._argument()
        if not self._tokens.take_words("AS"):
            return value
        return self._tokens.spanned(begin, exp.Alias(this=value, alias=self._tokens.identifier("field name")))

    def collected(self, begin: int, name: str = "array") -> exp.Expr:
        """Return the array, map or row in brackets or braces at the current token: ``[1, 2]``, ``{'a': 1}``,
        ``MAP {'a': 1}``, or a JDBC escape such as ``{d '2024-01-01'}``.
        """
        if self._tokens.take(TokenType.L_BRACKET):
            items = (
                [] if self._tokens.at(TokenType.R_BRACKET) else self._tokens.separated(self._context.scalar)
            )
            self._tokens.need(TokenType.R_BRACKET, "]")
            return self._tokens.spanned(begin, FunctionCall(this=name, expressions=items))
        self._tokens.need(TokenType.L_BRACE, "{")
        word = self._tokens.word()
        # {fn f(x)}, {d '..'}, {t '..'}, {ts '..'}
        if word == "FN" and not self._tokens.at(TokenType.COLON, 1):
            self._tokens.advance()
            node = self._context.scalar()
        elif word in _ESCAPED and self._tokens.at(TokenType.STRING, 1):
            self._tokens.advance(2)
            node = TypedLiteral(this=self._tokens.previous.text, kind=_ESCAPED[word])
        else:
            empty = self._tokens.at(TokenType.R_BRACE)
            pairs = (
                [] if empty else self._tokens.separated(self._entry if name == "map" else self._named_value)
            )
            items = [part for pair in pairs for part in pair]
            node = FunctionCall(this=name if name == "map" else "named_struct", expressions=items)
        self._tokens.need(TokenType.R_BRACE, "}")
        return self._tokens.spanned(begin, node)

    def _named_value(self) -> tuple[exp.Expr, exp.Expr]:
        # a: 1 is 'a': 1
        begin = self._tokens.index
        if self._tokens.is_name():
            name = self._tokens.spanned(begin, exp.Literal.string(self._tokens.identifier("field name").name))
        else:
            name = self._literals.string("a field name")
        self._tokens.need(TokenType.COLON, ":")
        return name, self._context.scalar()

    def _entry(self) -> tuple[exp.Expr, exp.Expr]:
        key = self._context.key()
        self._tokens.need(TokenType.COLON, ":")
        return key, self._context.scalar()

    def _sort_items(self) -> list[exp.Expr]:
        self._tokens.advance(2)
        return self._tokens.separated(self._over.sort_item)

    def _after_call(self, begin: int, node: FunctionCall) -> exp.Expr:
        self._counted_from(node)
        # IGNORE NULLS may precede WITHIN GROUP and FILTER, or follow them
        self._ignored_nulls(node)
        # PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a)
        if self._tokens.take_words("WITHIN", "GROUP"):
            self._tokens.need(TokenType.L_PAREN, "(")
            if not self._tokens.at_words("ORDER", "BY"):
                raise self._tokens.unexpected("ORDER BY")
            node.set("within", self._sort_items())
            self._tokens.need(TokenType.R_PAREN, ")")
        # COUNT(*) FILTER (WHERE a > 3); without a parenthesis FILTER is an alias
        if self._tokens.at_words("FILTER") and self._tokens.at(TokenType.L_PAREN, 1):
            self._tokens.advance(2)
            self._tokens.need_word("WHERE")
            node.set("filter", self._context.scalar())
            self._tokens.need(TokenType.R_PAREN, ")")
        self._ignored_nulls(node)
        # the last part of a call: SUM(a) FILTER (WHERE ..) OVER (PARTITION BY b)
        if self._tokens.at_words("OVER"):
            node.set("over", self._over.over())
        return self._tokens.spanned(begin, node)

    def _counted_from(self, node: FunctionCall) -> None:
        # NTH_VALUE(a, 2) FROM LAST; of other calls FROM begins the next clause
        if str(node.this).lower() != "nth_value" or self._tokens.word() != "FROM":
            return
        side, after = self._tokens.word(1), self._tokens.word(2)
        # SELECT nth_value(a, 2) FROM first is a table of that name
        if side in ("FIRST", "LAST") and after in ("IGNORE", "RESPECT", "OVER"):
            node.set("from_last", side == "LAST")
            self._tokens.advance(2)

    def _ignored_nulls(self, node: FunctionCall) -> None:
        if self._tokens.at_words("IGNORE", "NULLS") or self._tokens.at_words("RESPECT", "NULLS"):
            node.set("nulls", self._tokens.word())
            self._tokens.advance(2)

    def _extract(self, begin: int) -> exp.Expr | None:
        # EXTRACT(DAY FROM a); extract(a, b) is an ordinary call
        if self._tokens.word(1) != "FROM":
            return None
        unit = self._literals.unit_as_string()
        self._tokens.advance()
        return self._finish(begin, "extract", [unit, self._context.scalar()])

    def _substring(self, begin: int) -> exp.Expr | None:
        # SUBSTRING(a FROM 2 FOR 3) or SUBSTRING(a, 2, 3)
        args = [self._context.scalar()]
        if self._tokens.take_words("FROM"):
            args.append(self._context.scalar())
            if self._tokens.take_words("FOR"):
                args.append(self._context.scalar())
        elif self._tokens.take(TokenType.COMMA):
            args += self._tokens.separated(self._context.scalar)
        return self._finish(begin, "substring", args)

    def _position(self, begin: int) -> exp.Expr | None:
        # POSITION('x' IN a): an operand, as a whole expression would read IN as its predicate
        args = [self._context.operand()]
        if self._tokens.take_words("IN"):
            args.append(self._context.operand())
        elif self._tokens.take(TokenType.COMMA):
            args += self._tokens.separated(self._context.scalar)
        return self._finish(begin, "position", args)

    def _trim(self, begin: int) -> exp.Expr | None:
        # TRIM(BOTH FROM x), TRIM(LEADING ' ' FROM x), TRIM(x), TRIM(x, y); a column may be called leading
        side = (
            self._tokens.word()
            if self._tokens.word() in ("BOTH", "LEADING", "TRAILING")
            and not self._tokens.at(TokenType.R_PAREN, 1)
            else ""
        )
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
        if side:
            self._tokens.advance()
        # TRIM(LEADING FROM a) removes blanks
        if side and self._tokens.take_words("FROM"):
            return self._finish(begin, name, [self._context.scalar()])
        first = self._context.scalar()
        if self._tokens.take_words("FROM"):
            # the function has the text first: TRIM(BOTH 'x' FROM a) is trim(a, 'x')
            return self._finish(begin, name, [self._context.scalar(), first])
        more = self._tokens.separated(self._context.scalar) if self._tokens.take(TokenType.COMMA) else []
        return self._finish(begin, name, [first, *more])

    def _overlay(self, begin: int) -> exp.Expr | None:
        # OVERLAY(a PLACING b FROM 2 FOR 3) or overlay(a, b, 2, 3)
        args = [self._context.scalar()]
        if self._tokens.take_words("PLACING"):
            args.append(self._context.scalar())
            self._tokens.need_word("FROM")
            args.append(self._context.scalar())
            if self._tokens.take_words("FOR"):
                args.append(self._context.scalar())
        elif self._tokens.take(TokenType.COMMA):
            args += self._tokens.separated(self._context.scalar)
        return self._finish(begin, "overlay", args)

    def _rounded(self, begin: int) -> exp.Expr | None:
        """Parse ``FLOOR(x TO unit)`` on a time, or ``FLOOR(x, ..)`` on a number."""
        if self._tokens.at(TokenType.R_PAREN):
            return None
        name = self._tokens.sequence[begin].text
        args = self._tokens.separated(self._context.scalar)
        # FLOOR(time TO DAY)
        if len(args) == 1 and self._tokens.take_words("TO"):
            unit = self._literals.unit_as_string()
            self._tokens.need(TokenType.R_PAREN, ")")
            return self._tokens.spanned(begin, RoundedTo(this=args[0], unit=unit, up=name.upper() != "FLOOR"))
        return self._finish(begin, name, args)

    def _json_object(self, begin: int) -> exp.Expr:
        """Parse keys and values: ``KEY k VALUE v``, ``k VALUE v``, ``k : v`` or ``k, v``."""
        fields = [] if self._ends_json() else self._tokens.separated(self._json_field)
        return self._json(begin, "json_object", [part for field in fields for part in field])

    def _json_field(self) -> tuple[exp.Expr, exp.Expr]:
        # KEY is a word only before a key: in KEY VALUE 1, KEY : 1 and KEY, 1 it is a column
        if (
            self._tokens.at_words("KEY")
            and self._tokens.word(1) != "VALUE"
            and not self._tokens.at(TokenType.COMMA, 1)
            and not self._tokens.at(TokenType.COLON, 1)
        ):
            self._tokens.advance()
        key = self._context.key()
        if (
            not self._tokens.take_words("VALUE")
            and not self._tokens.take(TokenType.COLON)
            and not self._tokens.take(TokenType.COMMA)
        ):
            raise self._tokens.unexpected("VALUE", ":", ",")
        return key, self._context.scalar()

    def _json_array(self, begin: int) -> exp.Expr:
        return self._json(
            begin, "json_array", [] if self._ends_json() else self._tokens.separated(self._context.scalar)
        )

    def _json_objectagg(self, begin: int) -> exp.Expr:
        # JSON_OBJECTAGG(KEY k VALUE v ABSENT ON NULL)
        return self._json_aggregate(begin, "json_objectagg", list(self._json_field()), [])

    def _json_arrayagg(self, begin: int) -> exp.Expr:
        # JSON_ARRAYAGG(DISTINCT x ORDER BY y ABSENT ON NULL)
        distinct = self._tokens.take_words("DISTINCT")
        items = [self._context.scalar()]
        order = self._sort_items() if self._tokens.at_words("ORDER", "BY") else []
        return self._json_aggregate(begin, "json_arrayagg", items, order, distinct=distinct)

    def _json_value(self, begin: int, node: exp.Expr) -> exp.Expr:
        """Parse ``RETURNING type NULL ON EMPTY NULL ON ERROR`` of JSON_VALUE: a value that does not fit is
        NULL.
        """
        kind: tuple[int, int] | None = None
        if self._tokens.take_words("RETURNING"):
            first, depth = self._tokens.index, 0
            while self._tokens.current and not (
                depth == 0 and (self._tokens.at(TokenType.R_PAREN) or self._tokens.at_words("NULL", "ON"))
            ):
                depth += self._tokens.at(TokenType.L_PAREN) - self._tokens.at(TokenType.R_PAREN)
                self._tokens.advance()
            kind = (first, self._tokens.index)
        while self._tokens.take_words("NULL", "ON", "EMPTY") or self._tokens.take_words(
            "NULL", "ON", "ERROR"
        ):
            pass
        if self._tokens.word() in ("DEFAULT", "ERROR"):
            hint = "COALESCE(JSON_VALUE(..), x) is x where there is no value; without a clause it is NULL"
            raise self._tokens.not_yet(f"{self._tokens.word()} in JSON_VALUE", hint)
        self._tokens.need(TokenType.R_PAREN, ")")
        value = self._tokens.spanned(begin, node)
        if kind is None:
            return value
        returned = self._tokens.spanned(begin, CastTo(this=value, safe=True))
        returned.meta["sql_type"] = self._type_between(*kind)
        return returned

    def _json_aggregate(
        self,
        begin: int,
        name: str,
        items: list[exp.Expr],
        order: list[exp.Expr],
        *,
        distinct: bool = False,
    ) -> exp.Expr:
        nulls = self._json_nulls()
        self._tokens.need(TokenType.R_PAREN, ")")
        call = FunctionCall(this=name, expressions=items, order=order, distinct=distinct)
        node = self._after_call(begin, call)
        node.set("nulls", nulls)
        return node

    def _json_nulls(self) -> str | None:
        # NULL ON NULL writes NULLs into the JSON, ABSENT ON NULL leaves them out
        nulls = self._tokens.word() if not self._tokens.at(TokenType.R_PAREN) and self._ends_json() else None
        if nulls:
            self._tokens.advance(3)
        return nulls

    def _ends_json(self) -> bool:
        return (
            self._tokens.at(TokenType.R_PAREN)
            or self._tokens.at_words("NULL", "ON", "NULL")
            or self._tokens.at_words("ABSENT", "ON", "NULL")
        )

    def _json(self, begin: int, name: str, items: list[exp.Expr]) -> exp.Expr:
        nulls = self._json_nulls()
        self._tokens.need(TokenType.R_PAREN, ")")
        return self._tokens.spanned(begin, FunctionCall(this=name, expressions=items, nulls=nulls))

    def _finish(self, begin: int, name: str, args: list[exp.Expr]) -> exp.Expr:
        self._tokens.need(TokenType.R_PAREN, ")")
        return self._tokens.spanned(begin, FunctionCall(this=name, expressions=args))
