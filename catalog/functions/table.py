"""Table functions: the calls that UNNEST, LATERAL TABLE and LATERAL VIEW accept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.catalog.coercion import common_type_of
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.nested_type_rules import sequence
from penstock.catalog.functions.type_rules import Mismatch, Operand, wanted
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.other_dialects import TABLE_FUNCTION_HINTS
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    BIGINT,
    INT,
    STRING,
    Array,
    DataType,
    Map,
    Null,
    Row,
    is_integer,
)

# The types the arguments are cast to, and the columns of the rows.
TableTyping = tuple[tuple[DataType, ...], tuple[Field, ...]]
TableRule = Callable[[Sequence[Operand]], TableTyping]


@dataclass(frozen=True)
class TableFunction:
    """A function of the registry whose result is rows. ``runs`` names the kernel; ``outer``: a row without
    results is emitted with NULLs.
    """

    name: str
    usage: str
    help: str
    rule: TableRule
    arity: tuple[int, int | None]
    runs: str
    outer: bool = False


@dataclass(frozen=True)
class TableSignature:
    """A resolved call: its function, the types its arguments must be cast to, the columns of its rows."""

    function: TableFunction
    arg_types: tuple[DataType, ...]
    columns: tuple[Field, ...]


def _elements(operands: Sequence[Operand]) -> TableTyping:
    """The elements of an array as ``col``, the entries of a map as ``key`` and ``value``."""
    kind = operands[0].type
    # Names are Spark's: key and value of a map, col of an array. A key is never NULL.
    if isinstance(kind, Map):
        return (kind,), (Field("key", kind.key, False), Field("value", kind.value))
    if not isinstance(kind, Array):
        raise Mismatch(f"{kind} has no elements", "it takes an ARRAY or a MAP")
    return (kind,), (Field("col", kind.element),)


def _fields(operands: Sequence[Operand]) -> TableTyping:
    """The fields of the rows in an array."""
    kind = operands[0].type
    if not isinstance(kind, Array) or not isinstance(kind.element, Row):
        raise Mismatch(f"argument 1 is {kind}, wanted an ARRAY of rows")
    # Nullable: a row in the array may itself be NULL.
    return (kind,), tuple(Field(name, part) for name, part in kind.element.fields)


def _unnested(operands: Sequence[Operand]) -> TableTyping:
    """Rows as their fields, other elements as one column, a map as two."""
    kind = operands[0].type
    return (
        # The standard's UNNEST of rows has their fields as columns; explode has one column col.
        _fields(operands)
        if isinstance(kind, Array) and isinstance(kind.element, Row)
        else _elements(operands)
    )


def _numbered(operands: Sequence[Operand]) -> TableTyping:
    kinds, columns = _elements(operands)
    # posexplode counts from 0; WITH ORDINALITY of UNNEST from 1.
    return kinds, (Field("pos", INT, False), *columns)


def _stacked(operands: Sequence[Operand]) -> TableTyping:
    """``stack(n, a, b, ..)``: the values in n rows."""
    rows = operands[0].value
    values = operands[1:]
    if not operands[0].constant or not isinstance(rows, int) or rows < 1:
        raise Mismatch(
            "the number of rows is no constant above zero",
            "write stack(2, a, b, c, d) for two rows of two columns",
        )
    # Rounded up: stack(2, a, b, c) has two columns, and NULL in the last one of its second row.
    width = -(-len(values) // rows)
    columns = []
    # Values go row by row, so a column has every width-th of them.
    for place in range(width):
        # Column c is made of the values c, c + width, c + 2 * width: they share one type.
        kind = common_type_of([o.type for o in values[place::width]])
        if kind is None:
            raise Mismatch(f"column {place + 1} has no common type", "CAST the values to one type")
        columns.append(Field(f"col{place}", kind))
    return (INT, *(columns[i % width].type for i in range(len(values)))), tuple(columns)


def _tuple(operands: Sequence[Operand]) -> TableTyping:
    """``json_tuple(text, 'a', ..)``: a text for each field, in one row."""
    for operand in operands[1:]:
        # No quote: the binder writes the path $['name'].
        if (
            not operand.constant
            or not isinstance(operand.value, str)
            or "'" in operand.value
            or not operand.value
        ):
            raise Mismatch("a field's name is no plain constant text", "write json_tuple(text, 'a', 'b')")
    wanted(operands[0], STRING, 1)
    return (STRING,) * len(operands), tuple(Field(f"c{i}", STRING) for i in range(len(operands) - 1))


def _series(operands: Sequence[Operand]) -> TableTyping:
    kinds, kind = sequence(operands)
    assert isinstance(kind, Array)
    # generate_series(1, 9): BIGINT whatever the bounds are.
    if is_integer(kind.element):
        return (BIGINT,) * len(operands), (Field("value", BIGINT, False),)
    # sequence has a default step of a day; a series of times has none.
    if len(operands) < 3:
        raise Mismatch("a series of times needs a step", "write an INTERVAL as the third argument")
    return kinds, (Field("value", kind.element, False),)


def _range(operands: Sequence[Operand]) -> TableTyping:
    # wanted() alone would cast a text to BIGINT.
    for position, operand in enumerate(operands, 1):
        if not is_integer(operand.type) and not isinstance(operand.type, Null):
            raise Mismatch(f"argument {position} is {operand.type}, wanted an integer")
    return tuple(wanted(o, BIGINT, i) for i, o in enumerate(operands, 1)), (Field("id", BIGINT, False),)


TABLE_FUNCTIONS: tuple[TableFunction, ...] = (
    TableFunction(
        "unnest",
        "UNNEST(x)",
        "The elements of an array (rows as their fields), the entries of a map.",
        _unnested,
        (1, 1),
        "unnest",
    ),
    TableFunction(
        "explode",
        "explode(x)",
        "The elements of an array as col, the entries of a map as key, value.",
        _elements,
        (1, 1),
        "explode",
    ),
    # outer: a row with an empty array or NULL stays, with NULLs; the same code runs both forms.
    TableFunction(
        "explode_outer",
        "explode_outer(x)",
        "explode; one row of NULLs where there is none.",
        _elements,
        (1, 1),
        "explode",
        outer=True,
    ),
    TableFunction(
        "posexplode",
        "posexplode(x)",
        "explode with the position from 0 as pos before it.",
        _numbered,
        (1, 1),
        "posexplode",
    ),
    TableFunction(
        "posexplode_outer",
        "posexplode_outer(x)",
        "posexplode; NULLs where there is none.",
        _numbered,
        (1, 1),
        "posexplode",
        outer=True,
    ),
    TableFunction("inline", "inline(x)", "The rows of an array as columns.", _fields, (1, 1), "unnest"),
    TableFunction(
        "inline_outer",
        "inline_outer(x)",
        "inline; one row of NULLs where there is none.",
        _fields,
        (1, 1),
        "unnest",
        outer=True,
    ),
    TableFunction("stack", "stack(n, a, b, ..)", "The values in n rows.", _stacked, (2, None), "stack"),
    # Run as stack(1, ..) of get_json_object of each name.
    TableFunction(
        "json_tuple",
        "json_tuple(s, 'a', ..)",
        "Fields of a JSON object as texts c0, c1, ..",
        _tuple,
        (2, None),
        "stack",
    ),
    TableFunction(
        "generate_series",
        "generate_series(first, last[, step])",
        "The values from first to last as value; none where the step leads away from last.",
        _series,
        (2, 3),
        "series",
    ),
    # Without its end, unlike generate_series.
    TableFunction(
        "range",
        "range([first, ]end[, step])",
        "The numbers from first (0) up to and without end as id.",
        _range,
        (1, 3),
        "range",
    ),
)

_BY_NAME = {function.name: function for function in TABLE_FUNCTIONS}


def table_function_names() -> list[str]:
    """Return the names of all table functions, sorted."""
    return sorted(_BY_NAME)


def is_table_function(name: str) -> bool:
    """Return whether a name, in any case, is a table function."""
    return name.lower() in _BY_NAME


def resolve_table(
    name: str, operands: Sequence[Operand], span: Span | None, others: Sequence[str] = ()
) -> TableSignature:
    """Return the signature of a call; raise SQL-1101 for an unknown name (``others`` are names nearby),
    SQL-1102 and SQL-1103 for arguments.
    """
    function = _BY_NAME.get(name.lower())
    if function is None:
        # In both cases of letters: other names, such as TUMBLE, are in capitals.
        known = [*table_function_names(), *others]
        hint = did_you_mean(name.lower(), known) or did_you_mean(name.upper(), known)
        hint = TABLE_FUNCTION_HINTS.get(name.lower()) or hint
        hint = hint or f"the table functions are {', '.join(known)}, read_csv, read_json and read_parquet"
        raise PenstockError(
            "SQL-1101", f'table function "{name}" does not exist', span=span, hint=hint, sqlstate="42883"
        )
    least, most = function.arity
    if len(operands) < least or (most is not None and len(operands) > most):
        message = f"{function.name} does not take {len(operands)} argument{'s' if len(operands) != 1 else ''}"
        raise PenstockError("SQL-1102", message, span=span, hint=f"write {function.usage}")
    try:
        kinds, columns = function.rule(operands)
    except Mismatch as refusal:
        hint = refusal.hint or f"usage: {function.usage}"
        raise PenstockError(
            "SQL-1103", f"{function.name}: {refusal.message}", span=span, hint=hint, sqlstate="42804"
        ) from None
    return TableSignature(function, kinds, columns)
