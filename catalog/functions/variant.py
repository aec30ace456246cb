"""Functions of VARIANT, declared."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.catalog.functions.type_rules import Function, Mismatch, Operand, Typing, fixed, wanted
from penstock.catalog.types import BOOLEAN, STRING, VARIANT

# of a path: .name, [0], ['a name'] and ["a name"]
VARIANT_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"]+)|\[(?P<index>\d{1,9})\]|\['(?P<single>[^']*)'\]|\["(?P<double>[^"]*)"\]"""
)
_PATH = re.compile(r"\$(?:" + re.sub(r"\?P<\w+>", "?:", VARIANT_STEP.pattern) + ")*")


def _read(operands: Sequence[Operand]) -> Typing:
    value, path = operands
    if not path.constant or not isinstance(path.value, str):
        raise Mismatch("the path is no constant text", "write variant_get(v, '$.a[0]', 'INT')")
    if not _PATH.fullmatch(path.value):
        raise Mismatch(
            f"{path.value!r} is no path", "write '$.name', \"$['a name']\" or '$[0]', one behind another"
        )
    return (wanted(value, VARIANT, 1), STRING), VARIANT


VARIANTS: tuple[Function, ...] = (
    Function(
        "parse_json",
        "parse_json(s)",
        "JSON as a VARIANT. What is no JSON raises, and a name twice in one object.",
        fixed(STRING, result=VARIANT),
        (1, 1),
        fallible=True,
    ),
    Function(
        "try_parse_json",
        "try_parse_json(s)",
        "`parse_json`; NULL where that raises.",
        fixed(STRING, result=VARIANT),
        (1, 1),
        nullable=True,
    ),
    # v['a'], v[1], v:a.b[0] and variant_get
    Function(
        "variant_at",
        "v:a.b[0]",
        "The value at a path, NULL where there is none.",
        _read,
        (2, 2),
        nullable=True,
    ),
    Function(
        "is_variant_null",
        "is_variant_null(v)",
        "Whether the value is JSON's null; FALSE for NULL.",
        fixed(VARIANT, result=BOOLEAN),
        (1, 1),
        nullable=False,
    ),
    Function(
        "schema_of_variant",
        "schema_of_variant(v)",
        "The type of the value, as Spark writes it.",
        fixed(VARIANT, result=STRING),
        (1, 1),
    ),
)
