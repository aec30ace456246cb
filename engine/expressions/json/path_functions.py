"""JSON path functions: values, parts and keys of JSON texts. A compiled loop reads plain texts, DuckDB the
others.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.expressions.datum import Kernel
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.json.from_json import from_json
from penstock.engine.expressions.json.path_scan import (
    ABSENT,
    ARRAY,
    JSON_NULL,
    OBJECT,
    PARTS,
    SCALARS,
    PathValues,
    Step,
    is_scanned,
    scanning,
)
from penstock.engine.expressions.json.schema_of_json import schema_of_json
from penstock.engine.expressions.json.to_json import json_array, json_object, to_json
from penstock.engine.expressions.json.variant_functions import VARIANTS
from penstock.engine.expressions.kernel_factory import BoundCall, Factory

# $.name, $[0] and $['a name'], any number of them
_PATH = re.compile(r"\$(?:\.[^.\[\]*]+|\[\d+\]|\['[^']*'\])*")
_STEP = re.compile(r"\.([^.\[\]*]+)|\[(\d+)\]|\['([^']*)'\]")


Answer = Callable[[PathValues], pa.Array]


def _steps(bound: BoundCall) -> list[Step] | None:
    """Return the steps of the constant path. ``None`` for an invalid path."""
    path = bound.constant(1)
    if not isinstance(path, str):
        raise bad_argument("the JSON path must be a constant text", "write '$.name[0]'")
    # The mode is accepted, but changes nothing.
    path = re.sub(r"^(lax|strict) ", "", path.strip())
    if "*" in path:
        raise bad_argument(
            f"the JSON path {path!r} has a *, which is not offered", "name one field or element"
        )
    if not _PATH.fullmatch(path):
        return None
    return [int(index) if index else name or quoted for name, index, quoted in _STEP.findall(path)]


def _in_duckdb(steps: list[Step]) -> str:
    """Return a path in DuckDB's syntax with every name in double quotes, whatever characters it has."""
    path = "$" + "".join(f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in steps)
    return path.replace("'", "''").replace("{", "{{").replace("}", "}}")


def _by_path(answer: Answer, extraction: str, kind: pa.DataType) -> Factory:
    """Return the factory of a function of a path. ``extraction`` is its DuckDB expression over ``#json`` and
    ``#path``. ``#json`` is NULL for invalid JSON.
    """

    def factory(bound: BoundCall) -> Kernel:
        steps = _steps(bound)
        # An invalid path has no value in any text.
        if steps is None:
            return duckdb_kernel("NULL", kind)
        # DuckDB raises for invalid JSON, SQL's functions return NULL
        valid = "(CASE WHEN json_valid({0}) THEN {0}::JSON END)"
        expression = extraction.replace("#json", valid).replace("#path", f"'{_in_duckdb(steps)}'")
        kernel = duckdb_kernel(expression, kind)
        return scanning(steps, answer, kernel) if is_scanned(steps) else lambda text, *_: kernel(text)

    return factory


def _whole(answer: Answer, extraction: str, kind: pa.DataType) -> Factory:
    valid = "(CASE WHEN json_valid({0}) THEN {0}::JSON END)"
    return lambda bound: scanning([], answer, duckdb_kernel(extraction.replace("#json", valid), kind))


def _texts_of(*kinds: int) -> Answer:
    return lambda found: found.texts(found.is_any_of(kinds))


def _is_there(found: PathValues) -> pa.Array:
    return array_of(found.kinds != ABSENT)


def _array_length(found: PathValues) -> pa.Array:
    return array_of(found.counts.astype(np.int32), found.kinds != ARRAY)


def _length(found: PathValues) -> pa.Array:
    counts = np.where(found.is_any_of(PARTS), found.counts, 1)
    return array_of(counts.astype(np.int32), found.kinds == ABSENT)


def _is_json(bound: BoundCall) -> Kernel:
    """Return the kernel of IS JSON; a constant may name the kind of value."""
    named = str(bound.constant(1))
    among = _KINDS.get(named)
    wanted = {"object": (OBJECT,), "array": (ARRAY,), "scalar": (*SCALARS, JSON_NULL)}.get(named)
    answer = _is_there if wanted is None else lambda found: array_of(found.is_any_of(wanted))
    extraction = (
        "json_valid({0})"
        if among is None
        else f"CASE WHEN json_valid({{0}}) THEN json_type({{0}}) {among} ELSE false END"
    )
    return scanning([], answer, duckdb_kernel(extraction, pa.bool_()))


_KINDS = {"object": "= 'OBJECT'", "array": "= 'ARRAY'", "scalar": "NOT IN ('OBJECT', 'ARRAY')"}
# JSON_LENGTH: elements of an array, keys of an object, 1 for a scalar
_LENGTH = (
    "CASE json_type(#json) WHEN 'ARRAY' THEN json_array_length(#json)::INT WHEN 'OBJECT' THEN "
    "len(json_keys(#json))::INT "
    "ELSE CASE WHEN #json IS NOT NULL THEN 1 END END"
)
_ANY_VALUE = "json_extract_string(#json, #path)"
_KEYS = "CASE WHEN json_valid({0}) AND json_type({0}) = 'OBJECT' THEN json_keys({0}) END"
# JSON_VALUE returns scalars only, JSON_QUERY (_PART) objects and arrays only
_SCALAR = (
    "CASE WHEN json_type(#json, #path) NOT IN ('OBJECT', 'ARRAY', 'NULL') THEN "
    "json_extract_string(#json, #path) END"
)
_PART = "CASE WHEN json_type(#json, #path) IN ('OBJECT', 'ARRAY') THEN json_extract_string(#json, #path) END"

JSON_TEXTS: dict[str, Factory] = {
    "get_json_object": _by_path(
        _texts_of(*SCALARS, *PARTS), "json_extract_string(#json, #path)", pa.string()
    ),
    "json_value": _by_path(_texts_of(*SCALARS), _SCALAR, pa.string()),
    "json_query": _by_path(_texts_of(*PARTS), _PART, pa.string()),
    "json_exists": _by_path(_is_there, "coalesce(json_exists(#json, #path), false)", pa.bool_()),
    "json_array_length": _whole(
        _array_length,
        "CASE WHEN json_type(#json) = 'ARRAY' THEN json_array_length(#json)::INT END",
        pa.int32(),
    ),
    "json_object_keys": lambda bound: duckdb_kernel(_KEYS, pa.list_(pa.string())),
    "json_length": _whole(_length, _LENGTH, pa.int32()),
    "is_json": _is_json,
    "from_json": from_json,
    "schema_of_json": schema_of_json,
    "to_json": to_json,
    "json_object": json_object,
    "json_array": json_array,
    **VARIANTS,
}
