"""Expressions as SQL of databases: texts by their bytes, integers that overflow, and refusals by name."""

from __future__ import annotations

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING
from penstock.engine.connectors.database.database import PLACEHOLDER
from penstock.engine.connectors.database.expression_text import ExpressionText
from penstock.planner.expressions.nodes import Call, Cast, Column, Expression, Literal

N = Column(INT, True, index=0, name="n")
TEXT = Column(STRING, True, index=1, name="b")
FIELDS = (Field("n", INT), Field('b"', STRING))
ADDED = Call(INT, True, function="add", args=(N, Literal(INT, False, value=1)))
EQUAL = Call(BOOLEAN, True, function="equal", args=(TEXT, Literal(STRING, False, value="?")))
ONE_ROW = (
    "(SELECT CASE WHEN v IS NULL OR typeof(v) = 'integer' AND v BETWEEN -2147483648 AND 2147483647 THEN v "
)


def text(database: str, node: Expression) -> tuple[str, list[object]]:
    told = ExpressionText(database, FIELDS, "UPDATE of t")
    return told.text(node).replace(PLACEHOLDER, "?"), told.values


def test_texts_are_compared_by_their_bytes() -> None:
    assert text("postgres", EQUAL) == (
        '(CAST("b""" AS text) COLLATE "C" = CAST(? AS text) COLLATE "C")',
        ["?"],
    )
    assert text("sqlite", EQUAL) == ('(CAST("b""" AS TEXT) COLLATE "BINARY" = ? COLLATE "BINARY")', ["?"])


def test_integers_overflow_as_declared() -> None:
    assert text("duckdb", ADDED) == ('(CAST("n" AS INTEGER) + CAST(? AS INTEGER))', [1])
    assert text("sqlite", ADDED)[0].startswith(ONE_ROW)
    wide = Cast(BIGINT, True, arg=N)
    assert text("postgres", wide) == ('CAST(CAST("n" AS integer) AS bigint)', [])


def test_what_is_not_said_is_named() -> None:
    for node in (Call(STRING, True, function="upper", args=(TEXT,)), Cast(INT, True, arg=TEXT)):
        with pytest.raises(PenstockError, match="SQL-1601") as refused:
            text("duckdb", node)
        assert str(node) in refused.value.message
