"""Every function of docs/FUNCTIONS.md is tried somewhere: compared with Spark as recorded, or in a test of
its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from penstock.catalog.functions.aggregate import AGGREGATES
from penstock.catalog.functions.registry import INTERNAL_NAMES, SCALAR_FAMILIES
from penstock.catalog.functions.table import TABLE_FUNCTIONS
from penstock.planner.expressions.nodes import Call, Expression
from tests.harness.case_files import case_files
from tests.unit.engine.expressions import condition_cases, json_cases, nested_cases, variant_cases, word_cases
from tests.unit.engine.expressions.spark_cases import FAMILIES

TESTS = Path(__file__).parents[3]
SCALARS = {function.name for family in SCALAR_FAMILIES.values() for function in family}
# Where values are looked at, by the file: not those that only plan, list or refuse.
DIRECT = [
    path
    for path in case_files(TESTS, "**/test_*.py")
    if path != Path(__file__) and "planner" not in path.parts
]
DIRECT += case_files(Path(__file__).parent, "*_cases.py")


def recorded() -> set[str]:
    expressions = [
        nested_cases.bound(text, cases.COLUMNS)
        for cases in (nested_cases, word_cases, json_cases, condition_cases, variant_cases)
        for text in cases.texts()
    ]
    expressions += [expression for family in FAMILIES.values() for _, expression in family()]
    return {
        node.function for expression in expressions for node in parts(expression) if isinstance(node, Call)
    }


def parts(expression: Expression) -> list[Expression]:
    return [expression, *(node for child in expression.children for node in parts(child))]


def called() -> set[str]:
    return {
        word.lower()
        for path in DIRECT
        for word in re.findall(r"\b([A-Za-z_0-9]+)(?=[\"'(])", path.read_text(encoding="utf-8"))
    }


def test_every_scalar_function_is_tried() -> None:
    spelled = {"at_time_zone", "element", "is_true", "is_false"}
    assert not SCALARS - recorded() - called() - spelled, (
        "add a case, to condition_cases.py or to a test of its own"
    )
    texts = " ".join(path.read_text(encoding="utf-8") for path in DIRECT)
    assert all(word in texts for word in ("AT TIME ZONE", "arr[2]", "IS TRUE", "IS FALSE"))


def test_every_aggregate_and_table_function_is_tried() -> None:
    others = {function.name for function in AGGREGATES} | {function.name for function in TABLE_FUNCTIONS}
    assert not others - called() - INTERNAL_NAMES, "add a case to a test of its own"
