"""Facts about the server and its SQL, by the numbers of Flight SQL, and its types by those of ODBC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock import __version__
from penstock.catalog.functions.registry import function_kinds

_INT_MAP = pa.map_(pa.int32(), pa.list_(pa.int32()))
_VALUES = (
    ("string_value", pa.string()),
    ("bool_value", pa.bool_()),
    ("bigint_value", pa.int64()),
    ("int32_bitmask", pa.int32()),
    ("string_list", pa.list_(pa.string())),
    ("int32_to_int32_list_map", _INT_MAP),
)
_UNION = pa.dense_union([pa.field(name, kind) for name, kind in _VALUES])
SCHEMA = pa.schema([pa.field("info_name", pa.uint32(), False), pa.field("value", _UNION, False)])
_STRING, _BOOL, _BIGINT, _BITMASK, _STRINGS = range(5)


def sql_info(wanted: Sequence[int]) -> pa.Table:
    """Return the facts of these numbers, or all of them; a number that is not known has no row."""
    known = _facts()
    rows = [(number, *known[number]) for number in (wanted or known) if number in known]
    kinds = [kind for _, kind, _ in rows]
    # a dense union: a child for each type, and for each row its place in its child
    offsets = [kinds[:place].count(kind) for place, kind in enumerate(kinds)]
    children = [
        pa.array([value for _, each, value in rows if each == kind], arrow)
        for kind, (_, arrow) in enumerate(_VALUES)
    ]
    values = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()), pa.array(offsets, pa.int32()), children, [name for name, _ in _VALUES]
    )
    numbers = pa.array([number for number, _, _ in rows], pa.uint32())
    return pa.Table.from_arrays([numbers, values.cast(_UNION)], schema=SCHEMA)


def _facts() -> dict[int, tuple[int, Any]]:
    names = [name.upper() for name, _ in function_kinds()]
    return {
        0: (_STRING, "penstock"),
        1: (_STRING, __version__),
        2: (_STRING, pa.__version__),
        3: (_BOOL, False),  # read only
        4: (_BOOL, True),  # SQL
        5: (_BOOL, False),  # Substrait
        8: (_BITMASK, 0),  # transactions: none
        9: (_BOOL, True),  # cancel
        10: (_BOOL, True),  # bulk ingestion
        11: (_BOOL, False),  # ingestion in transactions
        100: (_BIGINT, 0),  # statements have no time limit
        101: (_BIGINT, 0),  # transactions have none
        500: (_BOOL, True),  # CREATE and DROP CATALOG
        501: (_BOOL, True),  # of databases
        502: (_BOOL, True),  # of tables
        503: (_BIGINT, 1),  # unquoted names: compared without case
        504: (_STRING, '"'),
        505: (_BIGINT, 1),  # quoted names: compared without case
        506: (_BOOL, True),  # all tables can be selected
        507: (_BIGINT, 0),  # NULLs are sorted high
        508: (_STRINGS, []),
        509: (_STRINGS, [name for name in names if name in _NUMERIC]),
        510: (_STRINGS, [name for name in names if name in _TEXT]),
        511: (_STRINGS, []),
        512: (_STRINGS, [name for name in names if name in _TIME]),
        513: (_STRING, "\\"),
        514: (_STRING, ""),
        515: (_BOOL, True),  # AS
        516: (_BOOL, True),  # NULL and a value make NULL
        531: (_STRING, "database"),
        532: (_STRING, "procedure"),
        533: (_STRING, "catalog"),
        565: (_BIGINT, 0),  # the default isolation: none
        566: (_BOOL, False),  # transactions
        571: (_BOOL, False),  # batch updates
        572: (_BOOL, False),  # savepoints
        573: (_BOOL, True),  # named parameters
        575: (_BOOL, True),  # stored functions by their own syntax
    }


_NUMERIC = frozenset({"ABS", "CEIL", "EXP", "FLOOR", "LN", "LOG10", "MOD", "POWER", "ROUND", "SIGN", "SQRT"})
_TEXT = frozenset({"CONCAT", "LENGTH", "LOWER", "REPLACE", "SUBSTRING", "TRIM", "UPPER"})
_TIME = frozenset({"CURRENT_DATE", "CURRENT_TIMESTAMP", "EXTRACT", "NOW", "YEAR", "MONTH", "HOUR"})

XDBC_SCHEMA = pa.schema(
    [
        pa.field("type_name", pa.string(), False),
        pa.field("data_type", pa.int32(), False),
        pa.field("column_size", pa.int32()),
        pa.field("literal_prefix", pa.string()),
        pa.field("literal_suffix", pa.string()),
        pa.field("create_params", pa.list_(pa.field("item", pa.string(), False))),
        pa.field("nullable", pa.int32(), False),
        pa.field("case_sensitive", pa.bool_(), False),
        pa.field("searchable", pa.int32(), False),
        pa.field("unsigned_attribute", pa.bool_()),
        pa.field("fixed_prec_scale", pa.bool_(), False),
        pa.field("auto_increment", pa.bool_()),
        pa.field("local_type_name", pa.string()),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        pa.field("sql_data_type", pa.int32(), False),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)
# name, number of ODBC, size, prefix and suffix of a literal, words that CREATE takes, case, radix
_TYPES: tuple[tuple[str, int, int, str | None, tuple[str, ...], bool, int | None], ...] = (
    ("BOOLEAN", -7, 1, None, (), False, None),
    ("TINYINT", -6, 3, None, (), False, 10),
    ("BIGINT", -5, 19, None, (), False, 10),
    ("BINARY", -3, 2_147_483_647, "X'", (), True, None),
    ("DECIMAL", 3, 38, None, ("precision", "scale"), False, 10),
    ("INT", 4, 10, None, (), False, 10),
    ("SMALLINT", 5, 5, None, (), False, 10),
    ("FLOAT", 7, 24, None, (), False, 2),
    ("DOUBLE", 8, 53, None, (), False, 2),
    ("STRING", 12, 2_147_483_647, "'", (), True, None),
    ("DATE", 91, 10, "DATE '", (), False, None),
    ("TIME", 92, 15, "TIME '", (), False, None),
    ("TIMESTAMP", 93, 29, "TIMESTAMP '", (), False, None),
)
_DATETIMES = {"DATE": 1, "TIME": 2, "TIMESTAMP": 3}
_SQL_DATETIME = 9


def xdbc_types(wanted: int | None) -> pa.Table:
    """Return the types of the language that ODBC has numbers for, or the one of a number."""
    rows = []
    for name, number, size, prefix, words, case, radix in _TYPES:
        if wanted is None or wanted == number:
            subcode = _DATETIMES.get(name)
            sql_type = number if subcode is None else _SQL_DATETIME
            scales = (0, 38) if name == "DECIMAL" else (None, None)
            suffix = None if prefix is None else "'"
            unsigned = False if radix is not None else None
            facts = (name, number, size, prefix, suffix, list(words), 1, case, 3, unsigned, False, False)
            rows.append((*facts, name, *scales, sql_type, subcode, radix, None))
    columns = list(zip(*rows, strict=True)) or [()] * len(XDBC_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, XDBC_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=XDBC_SCHEMA)
