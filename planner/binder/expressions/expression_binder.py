"""Scalar expressions: from syntax to typed nodes over column positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.functions.registry import can_cast, is_aggregate, resolve
from penstock.catalog.functions.table import is_table_function
from penstock.catalog.process_table_functions import PythonProcessTable
from penstock.catalog.python_functions import PythonScalar, PythonTable
from penstock.catalog.types import BIGINT, BOOLEAN, NULL, STRING, TIME, Boolean, DataType, Null, Time
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions import literals
from penstock.planner.binder.expressions.composed_functions import composed_function, composed_tree
from penstock.planner.binder.expressions.conditionals import CONDITIONALS, bind_case, conditional
from penstock.planner.binder.expressions.current_watermark import NAME as CURRENT_WATERMARK
from penstock.planner.binder.expressions.current_watermark import current_watermark
from penstock.planner.binder.expressions.function_rewrites import (
    CAST_FUNCTIONS,
    GROUPING,
    GroupingMark,
    cast_hint,
    decoded,
    extracted,
    resolve_unit_function,
    rounded_to,
    similar,
)
from penstock.planner.binder.expressions.host_values import host_value
from penstock.planner.binder.expressions.interval_casts import interval_conversion
from penstock.planner.binder.expressions.json import CONSTRUCTORS, json_constructor, json_read
from penstock.planner.binder.expressions.lambdas import bind_lambda_call, refuse_lambda, takes_lambda
from penstock.planner.binder.expressions.misplaced_calls import misplaced_aggregate, misplaced_window
from penstock.planner.binder.expressions.nested_access import element_of, field_of, with_field_names
from penstock.planner.binder.expressions.overloads import overloaded
from penstock.planner.binder.expressions.row_values import (
    ROW_COMPARISONS,
    compared_rows,
    overlapping,
    row_among,
)
from penstock.planner.binder.expressions.session_functions import session_function
from penstock.planner.binder.expressions.time_precision import cut_cast
from penstock.planner.binder.parameters import OpenParameter, TypedValue, placeholder_value
from penstock.planner.binder.scope import Scope
from penstock.planner.expressions.implicit_casts import coerced, coerced_argument
from penstock.planner.expressions.nodes import (
    Call,
    Cast,
    Column,
    Expression,
    LambdaVariable,
    Literal,
    Parameter,
)
from penstock.planner.expressions.python_calls import python_call
from penstock.planner.logical.over import OVER_ONLY
from penstock.planner.parser.scanner import MAX_DEPTH, too_deep
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    AnyOf,
    ArrayOf,
    CastTo,
    ColumnAt,
    FunctionCall,
    HostValue,
    IntervalLiteral,
    LambdaFunction,
    Reference,
    RoundedTo,
    Semantics,
    TypedLiteral,
    UnsignedRightShift,
    consume,
    span_of,
)

_BINARY: dict[type, str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.IntDiv: "div",
    exp.Mod: "mod",
    exp.DPipe: "concat_op",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.NullSafeEQ: "null_safe_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.And: "and",
    exp.Or: "or",
    exp.RegexpLike: "rlike",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.BitwiseAnd: "bitwise_and",
    exp.BitwiseOr: "bitwise_or",
    exp.BitwiseXor: "bitwise_xor",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
    UnsignedRightShift: "shiftrightunsigned",
}
_LAZY = CONDITIONALS - {"nullif"}
"""Conditionals that may skip an argument, so a literal there that cannot be cast must not fail planning."""
_MAX_ALIAS_PARTS = 1_000
# Clauses that only aggregate calls have: (argument of the tree) -> (word in the error).
_OF_AGGREGATES = {
    "distinct": "DISTINCT",
    "star": "*",
    "order": "ORDER BY",
    "within": "WITHIN GROUP",
    "nulls": "IGNORE NULLS",
    "filter": "FILTER",
}


class Aggregates(Protocol):
    """Collects the aggregate calls, or the calls with OVER, of an expression. ``None`` instead of it means
    that the clause allows none.
    """

    def add(self, call: FunctionCall, binder: ExpressionBinder) -> Expression:
        """Record an aggregate call and return a placeholder for its result."""


class Subqueries(Protocol):
    """Binds the subqueries of an expression. ``None`` instead of it means that the clause allows none."""

    def value(self, tree: exp.Expr, binder: ExpressionBinder) -> Expression:
        """Return a scalar subquery, EXISTS, IN, a comparison with ANY, or ARRAY of a query as a value."""


@dataclass
class ExpressionBinder:
    """Binds expressions over one scope. ``clause`` names the clause in errors, e.g. ``WHERE``. ``aliases``
    are the items of the select list before this one, by their names in lower case.
    """

    scope: Scope
    context: BindContext
    clause: str
    aggregates: Aggregates | None = None
    depth: int = 0
    subqueries: Subqueries | None = None
    windows: Aggregates | None = None
    lambda_parameters: tuple[LambdaVariable, ...] = ()
    aliases: Mapping[str, Expression] = field(default_factory=dict)

    def bind(self, tree: exp.Expr) -> Expression:
        """Return the typed expression of a tree. Raises SQL-10xx and SQL-11xx with spans."""
        self.depth += 1
        # One level of nesting in SQL may be several levels of the tree.
        if self.depth > 4 * MAX_DEPTH:
            raise too_deep(span_of(tree) or Span(0, 1))
        bound = self._bind(tree)
        self.depth -= 1
        return bound

    def condition(self, tree: exp.Expr, clause: str | None = None) -> Expression:
        """Return a BOOLEAN expression. Raises SQL-1103 for another type; ``clause`` names it in the error,
        else the binder's clause.
        """
        bound = self.bind(tree)
        if not isinstance(bound.type, Boolean | Null):
            hint = "compare it with something"
            message = f"{clause or self.clause} takes a BOOLEAN, this is {bound.type}"
            raise PenstockError("SQL-1103", message, span=bound.span, hint=hint, sqlstate="42804")
        return coerced(bound, BOOLEAN)

    def _bind(self, tree: exp.Expr) -> Expression:
        if (function := _BINARY.get(type(tree))) is not None:
            consume(tree, "this", "expression")
            left, right = tree.this, tree.args["expression"]
            # (a, b) < (c, d) is compared part by part.
            if function in ROW_COMPARISONS and (isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple)):
                return compared_rows(function, left, right, self.bind, self.call)
            return self.call(function, [self.bind(left), self.bind(right)], span_of(tree))
        # ~a
        if isinstance(tree, exp.BitwiseNot):
            consume(tree, "this")
            return self.call("bitwise_not", [self.bind(tree.this)], span_of(tree))
        return _METHODS[type(tree)](self, tree)

    # names

    def _reference(self, tree: exp.Expr) -> Expression:
        parts = tree.expressions
        variable = self.parameter(tree)
        bound: Expression
        # used: how many parts name the column: 1 for x, 2 for t.x
        bound, used = self._resolved(tree) if variable is None else (replace(variable, span=span_of(tree)), 1)
        # t.r.f.g: the parts behind the column are fields of rows.
        for part in parts[used:]:
            bound = field_of(bound, part, span_of(tree))
        return bound

    def inside_lambda(self, parameters: Sequence[LambdaVariable], clause: str) -> ExpressionBinder:
        """Return the binder of a lambda's body. It resolves the parameters first and allows no aggregate,
        OVER or subquery.
        """
        return replace(
            self,
            lambda_parameters=(*self.lambda_parameters, *parameters),
            aggregates=None,
            windows=None,
            subqueries=None,
            clause=clause,
        )

    def parameter(self, tree: exp.Expr) -> LambdaVariable | None:
        """Return the lambda parameter that a name begins with, the innermost one, or None."""
        first = tree.expressions[0].name.lower()
        return next(
            (variable for variable in reversed(self.lambda_parameters) if variable.name.lower() == first),
            None,
        )

    def _resolved(self, tree: exp.Expr) -> tuple[Expression, int]:
        # a column of FROM wins over an alias of the list, and the alias over a column of an outer query
        alias = self.aliases.get(tree.expressions[0].name.lower()) if self.aliases else None
        if alias is not None and not self.scope.resolves(tree.expressions):
            # a AS b, b + b AS c, c + c AS d: the expression is written out at each use
            if sum(1 for _ in islice(alias.walk(), _MAX_ALIAS_PARTS + 1)) > _MAX_ALIAS_PARTS:
                name = tree.expressions[0].name
                raise PenstockError(
                    "SQL-1007",
                    f'the alias "{name}" is an expression of more than {_MAX_ALIAS_PARTS:,} parts',
                    span=span_of(tree),
                    hint="compute it in a subquery of FROM",
                    sqlstate="54001",
                )
            return replace(alias, span=span_of(tree)), 1
        # A name that only a query around this one knows
        parts = tree.expressions
        if not self.scope.sees(parts) and (outer := self.context.outer_column(parts, span_of(tree))):
            return outer
        column, used = self.scope.resolve(parts)
        known = column.field
        return Column(
            known.type, known.nullable, index=column.index, name=known.name, span=span_of(tree)
        ), used

    def _dot(self, tree: exp.Expr) -> Expression:
        return field_of(self.bind(tree.this), tree.args["expression"], span_of(tree))

    def _bracket(self, tree: exp.Expr) -> Expression:
        return element_of(self.bind(tree.this), self.bind(tree.expressions[0]), self.call, span_of(tree))

    def _star(self, tree: exp.Expr) -> Expression:
        raise PenstockError(
            "SQL-1001",
            "* means all columns only in the SELECT list and in COUNT(*)",
            span=span_of(tree),
            sqlstate="42601",
        )

    # literals

    def _literal(self, tree: exp.Expr) -> Expression:
        # 'text'
        if tree.is_string:
            return Literal(STRING, False, value=tree.name, span=span_of(tree))
        # 1, 1.5, 1e3
        return literals.number(tree, False, span_of(tree))

    def _negative(self, tree: exp.Expr) -> Expression:
        # -128 is one literal, so that the smallest TINYINT fits.
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return literals.number(tree.this, True, span_of(tree))
        # -x
        return self.call("negate", [self.bind(tree.this)], span_of(tree))

    def _placeholder(self, tree: exp.Expr) -> Expression:
        value, span = placeholder_value(tree, self.context.parameters), span_of(tree)
        # prepared: the value comes with EXECUTE
        if isinstance(value, OpenParameter):
            return Parameter(value.type, True, name=value.name, span=span)
        if isinstance(value, TypedValue):
            return coerced_argument(host_value(value.value, self.call, span), value.type, "parameter")
        return host_value(value, self.call, span)

    # predicates

    def _not(self, tree: exp.Expr) -> Expression:
        inner = tree.this
        # x IS NOT NULL is one function, which never returns NULL.
        if isinstance(inner, exp.Is) and isinstance(inner.args["expression"], exp.Null):
            return self.call("is_not_null", [self.bind(inner.this)], span_of(tree))
        return self.call("not", [self.bind(inner)], span_of(tree))

    def _is(self, tree: exp.Expr) -> Expression:
        value = tree.args["expression"]
        # x IS NULL, x IS TRUE, x IS FALSE: never NULL themselves
        function = "is_null" if isinstance(value, exp.Null) else "is_true" if value.this else "is_false"
        return self.call(function, [self.bind(tree.this)], span_of(tree))

    def _between(self, tree: exp.Expr) -> Expression:
        consume(tree, "this", "low", "high", "symmetric")
        span, value = span_of(tree), self.bind(tree.this)
        low, high = self.bind(tree.args["low"]), self.bind(tree.args["high"])

        # x BETWEEN a AND b is x >= a AND x <= b; value is shared, expressions are immutable
        def between(a: Expression, b: Expression) -> Expression:
            return self.call(
                "and",
                [self.call("greater_equal", [value, a], span), self.call("less_equal", [value, b], span)],
                span,
            )

        return (
            # SYMMETRIC: the bounds in either order
            self.call("or", [between(low, high), between(high, low)], span)
            if tree.args.get("symmetric")
            else between(low, high)
        )

    def _similar(self, tree: exp.Expr) -> Expression:
        consume(tree, "this", "expression")
        return similar(
            self.bind(tree.this), self.bind(tree.args["expression"]), None, self.call, span_of(tree)
        )

    def _rounded_to(self, tree: exp.Expr) -> Expression:
        assert isinstance(tree, RoundedTo)
        return rounded_to(tree, self.bind(tree.this), self.call)

    def _subquery(self, tree: exp.Expr) -> Expression:
        # A clause without a plan that the subquery could be joined to
        if self.subqueries is None:
            hint = "put it into the SELECT list or the WHERE of a subquery in FROM, and read its column here"
            raise PenstockError(
                "SQL-1601",
                f"a subquery cannot be used in {self.clause}",
                span=span_of(tree),
                hint=hint,
                sqlstate="0A000",
            )
        return self.subqueries.value(tree, self)

    def _tuple(self, tree: exp.Expr) -> Expression:
        # (a, b) is ROW(a, b); comparisons and IN take its parts apart before
        row = self.call("row", [self.bind(item) for item in tree.expressions], span_of(tree))
        return with_field_names(row, tree.expressions)

    def _overlaps(self, tree: exp.Expr) -> Expression:
        return overlapping(tree.this, tree.args["expression"], self.bind, self.call, span_of(tree))

    def _column_at(self, tree: exp.Expr) -> Expression:
        # a column by position, which the binder itself put into a rewritten tree; no name can hide it
        column = next(c for c in self.scope.columns if c.index == tree.meta["index"])
        return Column(
            column.field.type,
            column.field.nullable,
            index=column.index,
            name=column.field.name,
            span=span_of(tree),
        )

    def _in(self, tree: exp.Expr) -> Expression:
        # x IN (SELECT ..)
        if tree.args.get("query") is not None:
            return self._subquery(tree)
        consume(tree, "this", "expressions")
        if isinstance(tree.this, exp.Tuple):
            # (a, b) IN ((1, 2), ..)
            return row_among(tree.this, tree.expressions, self.bind, self.call)
        value, items = self.bind(tree.this), [self.bind(item) for item in tree.expressions]
        # A list of constants is one call, if casting to the common type leaves them constants.
        if all(isinstance(item, Literal) for item in items):
            bound = self.call("in", [value, *items], span_of(tree))
            if all(isinstance(item, Literal) for item in bound.children[1:]):
                return bound
        # Otherwise OR of equalities, as a balanced tree: a long list must not make a deep expression.
        tests = [self.call("equal", [value, item], span_of(tree)) for item in items]
        while len(tests) > 1:
            pairs = [
                self.call("or", [a, b], span_of(tree)) for a, b in zip(tests[::2], tests[1::2], strict=False)
            ]
            tests = pairs + ([tests[-1]] if len(tests) % 2 else [])
        return tests[0]

    def _escape(self, tree: exp.Expr) -> Expression:
        like = tree.this
        escape = tree.args["expression"]
        if len(escape.name) != 1:
            raise PenstockError(
                "SQL-1011", "ESCAPE takes one character", span=span_of(escape), sqlstate="22019"
            )
        # x SIMILAR TO p ESCAPE '#'
        if isinstance(like, exp.SimilarTo):
            return similar(
                self.bind(like.this), self.bind(like.args["expression"]), escape, self.call, span_of(tree)
            )
        # x LIKE p ESCAPE '#', and ILIKE: a third argument of the function
        args = [self.bind(like.this), self.bind(like.args["expression"]), self.bind(escape)]
        return self.call(_BINARY[type(like)], args, span_of(tree))

    # calls

    def call(self, function: str, args: Sequence[Expression], span: Span | None) -> Expression:
        """Return the call of a scalar function, its arguments cast to the types of its signature."""
        # functions of BINARY, TIME and intervals are those of text and of timestamps
        if (rewritten := overloaded(function.lower(), args, self.call, span)) is not None:
            return rewritten
        # resolve chooses the overload by argument types, and names the types that arguments are cast to
        signature = resolve(function, args, span, self.context.catalog.functions.names())
        # COALESCE(x, 'a') over INT x: 'a' is cast when it is reached, elsewhere it is an error now
        lazy = signature.canonical in _LAZY or signature.canonical.startswith("try_")
        wanted = [
            coerced(arg, kind) if lazy else coerced_argument(arg, kind, signature.canonical)
            for arg, kind in zip(args, signature.arg_types, strict=False)
        ]
        # COALESCE, NULLIF and others become CASE.
        if signature.canonical in CONDITIONALS:
            return conditional(signature.canonical, wanted, signature.result, span)
        # None: NULL in, NULL out
        nullable = any(arg.nullable for arg in args) if signature.nullable is None else signature.nullable
        return Call(signature.result, nullable, function=signature.canonical, args=tuple(wanted), span=span)

    def _function(self, tree: exp.Expr) -> Expression:
        assert isinstance(tree, FunctionCall)
        name, span = str(tree.this), span_of(tree)
        # f(..) OVER (..): the OVER list takes it.
        if tree.args.get("over") is not None:
            # WHERE, GROUP BY, HAVING: the rows of a partition are not there yet
            if self.windows is None:
                raise misplaced_window(name, self.clause, span_of(tree.args["over"]))
            return self.windows.add(tree, replace(self, clause="a call with OVER"))
        # ROW_NUMBER() without OVER
        if name.lower() in OVER_ONLY and not is_aggregate(name):
            message = f"{name.lower()} is allowed only with OVER"
            raise PenstockError(
                "SQL-1065",
                message,
                span=span,
                hint="write OVER (PARTITION BY .. ORDER BY ..) behind it",
                sqlstate="42P20",
            )
        # ARRAYS_ZIP, MAP_ZIP_WITH: other calls with lambdas
        if (written := composed_tree(tree)) is not None and name not in self.context.catalog.functions:
            return self.bind(written)
        # transform(a, x -> x + 1)
        if takes_lambda(tree):
            consume(tree, "this", "expressions")
            return bind_lambda_call(tree, self)
        # SUM(x), COUNT(*): the aggregate list takes it.
        if self.context.is_aggregate(name):
            # WHERE SUM(x) > 1
            if self.aggregates is None:
                raise misplaced_aggregate(name, self.clause, span)
            return self.aggregates.add(tree, self)
        # GROUPING(k) is rewritten once the grouping sets are known; in WHERE it is an unknown function.
        if name.lower() in GROUPING and self.aggregates is not None:
            keys = tuple(self.bind(arg) for arg in tree.expressions)
            return GroupingMark(BIGINT, False, keys=keys, span=span)
        # a registered function shadows a built-in one of its name
        python = self._python_scalar(name, span)
        # JSON_OBJECT and JSON_ARRAY have a NULL ON NULL clause.
        if name.lower() in CONSTRUCTORS and python is None:
            consume(tree, "this", "expressions", "nulls")
            return json_constructor(
                name.lower(),
                [self.bind(arg) for arg in tree.expressions],
                tree.args.get("nulls"),
                self.call,
                span,
            )
        self._refuse_aggregate_clauses(tree, builtin=python is None)
        # struct(a AS b): the names are those of the fields
        args = [self.bind(arg.this if isinstance(arg, exp.Alias) else arg) for arg in tree.expressions]
        if python is not None:
            return python_call(name, python, args, span)
        # float(x) is CAST(x AS FLOAT)
        if (kind := CAST_FUNCTIONS.get(name.lower())) is not None and len(args) == 1:
            return self._cast_to(args[0], kind, False, span)
        return self._builtin(name, args, tree)

    def _builtin(self, name: str, args: list[Expression], tree: FunctionCall) -> Expression:
        """Bind a call of a function that is not registered by a program."""
        span = span_of(tree)
        # EXTRACT(YEAR FROM ts) is a function per part.
        if name.lower() in ("extract", "date_part", "datepart"):
            return extracted(args, tree, self.call)
        # The constant schema argument is the result type.
        if name.lower() == "from_json" and len(args) > 1:
            return json_read(args, self.call, span)
        # decode(x, a, b, ..) is CASE; decode(x, 'UTF-8') is a function.
        if name.lower() == "decode" and len(args) > 2:
            return decoded(args, self.call, span)
        if name.lower() == CURRENT_WATERMARK:
            self.context.watermark_calls.append(name)
            return current_watermark(args, span)
        constant = session_function(name.lower(), len(args), self.context, span)
        if (whole := constant or composed_function(name.lower(), args, self.call, span)) is not None:
            return whole
        called = self.call(resolve_unit_function(name, len(args)), args, span)
        # struct(t.a, 1): ROW<a .., col2 ..>
        return with_field_names(called, tree.expressions) if name.lower() in ("struct", "row") else called

    def _refuse_aggregate_clauses(self, tree: FunctionCall, *, builtin: bool) -> None:
        """Refuse a scalar function with DISTINCT, FILTER or *: SQL-1105. An unknown function is reported as
        unknown first.
        """
        name, span = str(tree.this), span_of(tree)
        for key, word in _OF_AGGREGATES.items():
            if tree.args.get(key):
                if builtin:
                    resolve(name, [self.bind(arg) for arg in tree.expressions], span)
                raise PenstockError(
                    "SQL-1105", f"{word} goes with aggregate functions, {name.lower()} is none", span=span
                )

    def _python_scalar(self, name: str, span: Span | None) -> PythonScalar | None:
        """Return the registered Python scalar function of that name, or None. Raises SQL-1107 for a table
        function, which belongs in FROM.
        """
        function = self.context.catalog.functions.find(name, span)
        if isinstance(function, PythonTable | PythonProcessTable) or (
            function is None and is_table_function(name)
        ):
            hint = f"write FROM t, LATERAL TABLE({name}(..)) AS f(..)"
            hint = f"write FROM {function.usage}" if isinstance(function, PythonProcessTable) else hint
            raise PenstockError(
                "SQL-1107",
                f"{name} returns rows: it is a table function",
                span=span,
                hint=hint,
                sqlstate="42809",
            )
        return function if isinstance(function, PythonScalar) else None

    def _semantics(self, tree: exp.Expr) -> Expression:
        word = "FINAL" if tree.args.get("final") else "RUNNING"
        message, hint = f"{word} is allowed in MEASURES only", "leave it out"
        raise PenstockError("SQL-1746", message, span=span_of(tree), hint=hint, sqlstate="42601")

    def _cast(self, tree: exp.Expr) -> Expression:
        assert isinstance(tree, CastTo)
        value = self.bind(tree.this)
        converted = interval_conversion(value, tree, self.call, span_of(tree))
        if converted is not None and converted.type == tree.sql_type:
            return converted
        value = converted or value
        # the cast is to TIME: the digits are cut behind it, and states of plans before have this type
        kind = TIME if isinstance(tree.sql_type, Time) else tree.sql_type
        cast = self._cast_to(value, kind, bool(tree.args.get("safe")), span_of(tree))
        return cut_cast(cast, value.type, tree.sql_type, len(self.lambda_parameters))

    def _cast_to(self, value: Expression, kind: DataType, safe: bool, span: Span | None) -> Expression:
        # only whether the types fit; whether this value does is known when the row is there
        if not can_cast(value.type, kind):
            message = f"{value.type} cannot be cast to {kind}"
            hint = cast_hint(value.type, kind)
            raise PenstockError("SQL-1106", message, hint=hint, span=span, sqlstate="42846")
        # TRY_CAST is NULL where CAST raises.
        return Cast(kind, value.nullable or safe, arg=value, safe=safe, span=span)


_METHODS: dict[type, Callable[[ExpressionBinder, Any], Expression]] = {
    Reference: ExpressionBinder._reference,
    exp.Literal: ExpressionBinder._literal,
    exp.Null: lambda binder, tree: Literal(NULL, True, value=None, span=span_of(tree)),
    exp.Boolean: lambda binder, tree: Literal(BOOLEAN, False, value=bool(tree.this), span=span_of(tree)),
    exp.Placeholder: ExpressionBinder._placeholder,
    HostValue: lambda binder, tree: host_value(tree.meta["value"], binder.call, span_of(tree)),
    TypedLiteral: lambda binder, tree: literals.typed(tree, binder.context.zone),
    IntervalLiteral: lambda binder, tree: literals.interval(tree),
    exp.Paren: lambda binder, tree: binder.bind(tree.this),
    exp.Neg: ExpressionBinder._negative,
    exp.Not: ExpressionBinder._not,
    exp.Is: ExpressionBinder._is,
    exp.Between: ExpressionBinder._between,
    exp.SimilarTo: ExpressionBinder._similar,
    exp.Overlaps: ExpressionBinder._overlaps,
    RoundedTo: ExpressionBinder._rounded_to,
    exp.In: ExpressionBinder._in,
    AnyOf: ExpressionBinder._subquery,
    ArrayOf: ExpressionBinder._subquery,
    exp.Exists: ExpressionBinder._subquery,
    exp.Subquery: ExpressionBinder._subquery,
    exp.Tuple: ExpressionBinder._tuple,
    ColumnAt: ExpressionBinder._column_at,
    exp.Escape: ExpressionBinder._escape,
    exp.Case: bind_case,
    exp.Dot: ExpressionBinder._dot,
    exp.Bracket: ExpressionBinder._bracket,
    CastTo: ExpressionBinder._cast,
    FunctionCall: ExpressionBinder._function,
    Semantics: ExpressionBinder._semantics,
    LambdaFunction: refuse_lambda,
    AllColumns: ExpressionBinder._star,
}
