"""JSON path functions: values, parts and keys of JSON texts, computed by DuckDB."""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.engine.expressions.datum import Kernel
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.json.from_json import from_json
from penstock.engine.expressions.json.schema_of_json import schema_of_json
from penstock.engine.expressions.json.to_json import json_array, json_object, to_json
from penstock.engine.expressions.kernel_factory import BoundCall, Factory

# $.name, $[0] and $['a name'], any number of them
_PATH = re.compile(r"\$(?:\.[^.\[\]*]+|\[\d+\]|\['[^']*'\])*")
_STEP = re.compile(r"\.([^.\[\]*]+)|\[(\d+)\]|\['([^']*)'\]")


def _path(bound: BoundCall) -> str | None:
    """Return the constant path in DuckDB's syntax with every name quoted. ``None`` for an invalid path."""
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
    # every name in double quotes, whatever characters it has
    steps = [
        f'."{name or quoted}"' if name or quoted else f"[{index}]"
        for name, index, quoted in _STEP.findall(path)
    ]
    return ("$" + "".join(steps)).replace("'", "''").replace("{", "{{").replace("}", "}}")


def _by_path(extraction: str, kind: pa.DataType) -> Factory:
    """Return the factory of a DuckDB expression over ``#json`` and ``#path``. ``#json`` is NULL for invalid
    JSON.
    """

    def factory(bound: BoundCall) -> Kernel:
        path = _path(bound)
        # An invalid path has no value in any text.
        if path is None:
            return duckdb_kernel("NULL", kind)
        # DuckDB raises for invalid JSON, SQL's functions return NULL
        valid = "(CASE WHEN json_valid({0}) THEN {0}::JSON END)"
        kernel = duckdb_kernel(extraction.replace("#json", valid).replace("#path", f"'{path}'"), kind)
        return lambda text, *_: kernel(text)

    return factory


def _whole(extraction: str, kind: pa.DataType) -> Factory:
    return lambda bound: duckdb_kernel(
        extraction.replace("#json", "(CASE WHEN json_valid({0}) THEN {0}::JSON END)"), kind
    )


def _is_json(bound: BoundCall) -> Kernel:
    """Return the kernel of IS JSON; a constant may name the kind of value."""
    among = _KINDS.get(str(bound.constant(1)))
    extraction = (
        "json_valid({0})"
        if among is None
        else f"CASE WHEN json_valid({{0}}) THEN json_type({{0}}) {among} ELSE false END"
    )
    kernel = duckdb_kernel(extraction, pa.bool_())
    return lambda text, *_: kernel(text)


_KINDS = {"object": "= 'OBJECT'", "array": "= 'ARRAY'", "scalar": "NOT IN ('OBJECT', 'ARRAY')"}
# JSON_LENGTH: elements of an array, keys of an object, 1 for a scalar
_LENGTH = (
    "CASE json_type(#json) WHEN 'ARRAY' THEN json_array_length(#json)::INT WHEN 'OBJECT' THEN "
    "len(json_keys(#json))::INT "
    "ELSE CASE WHEN #json IS NOT NULL THEN 1 END END"
)
# JSON_VALUE returns scalars only, JSON_QUERY (_PART) objects and arrays only
_SCALAR = (
    "CASE WHEN json_type(#json, #path) NOT IN ('OBJECT', 'ARRAY', 'NULL') THEN "
    "json_extract_string(#json, #path) END"
)
_PART = "CASE WHEN json_type(#json, #path) IN ('OBJECT', 'ARRAY') THEN json_extract_string(#json, #path) END"

JSON_TEXTS: dict[str, Factory] = {
    "get_json_object": _by_path("json_extract_string(#json, #path)", pa.string()),
    "json_value": _by_path(_SCALAR, pa.string()),
    "json_query": _by_path(_PART, pa.string()),
    "json_exists": _by_path("coalesce(json_exists(#json, #path), false)", pa.bool_()),
    "json_array_length": _whole(
        "CASE WHEN json_type(#json) = 'ARRAY' THEN json_array_length(#json)::INT END", pa.int32()
    ),
    "json_object_keys": _whole(
        "CASE WHEN json_type(#json) = 'OBJECT' THEN json_keys(#json) END", pa.list_(pa.string())
    ),
    "json_length": _whole(_LENGTH, pa.int32()),
    "is_json": _is_json,
    "from_json": from_json,
    "schema_of_json": schema_of_json,
    "to_json": to_json,
    "json_object": json_object,
    "json_array": json_array,
}
