"""Parameters are literals of the Python value's SQL type."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.planner.binder.binder import Binder
from penstock.planner.logical.projection import Filter
from penstock.planner.logical.scan import Values
from penstock.planner.statements.script import parse_statement
from tests.unit.planner.frontend import sample_catalog


@pytest.fixture
def binder() -> Binder:
    return Binder(sample_catalog(), Settings())


def test_types(binder: Binder) -> None:
    values = [
        None,
        True,
        1,
        1 << 40,
        1 << 70,
        1.5,
        "it's",
        b"x",
        Decimal("1.50"),
        date(2013, 1, 1),
        time(1, 2),
        timedelta(seconds=3),
    ]
    moment = datetime(2013, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    values += [datetime(2013, 1, 1), moment]
    plan = binder.bind_query(parse_statement("SELECT " + ", ".join("?" * len(values))), values)  # type: ignore[arg-type]
    assert isinstance(plan, Values)
    assert [str(field.type) for field in plan.schema] == [
        "NULL", "BOOLEAN", "INT", "BIGINT", "DECIMAL(22, 0)", "DOUBLE", "STRING", "BINARY", "DECIMAL(3, 2)", "DATE", "TIME",
        "INTERVAL DAY TO SECOND", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)",
    ]  # fmt: skip
    assert plan.rows[0][-1].value == datetime(2013, 1, 1, 10, tzinfo=UTC)


def test_places(binder: Binder) -> None:
    query = parse_statement(
        "WITH a AS (SELECT * FROM bid WHERE price > ?) SELECT auction FROM a WHERE channel = ? LIMIT ?"
    )
    plan = binder.bind_query(query, [5, "x", 3])  # type: ignore[arg-type]
    predicates = [str(node.predicate) for node in plan.walk() if isinstance(node, Filter)]
    assert predicates == ["(channel = 'x')", "(price > 5.00)"]


@pytest.mark.parametrize("values", [[], [1, 2]])
def test_a_wrong_number_is_refused(binder: Binder, values: list[object]) -> None:
    with pytest.raises(PenstockError, match="the statement has 1 parameter") as caught:
        binder.bind_query(parse_statement("SELECT ?"), values)  # type: ignore[arg-type]
    assert caught.value.code == "SQL-1013"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "Python type object"),
        ({}, "empty dict"),
        ([object()], "Python type object"),
        (Decimal("NaN"), "Decimal NaN"),
        (10**38, "fits no SQL type"),
        (time(1, tzinfo=UTC), "a time with a zone"),
    ],
)
def test_a_type_without_sql_is_refused(binder: Binder, value: object, message: str) -> None:
    with pytest.raises(PenstockError, match=message) as caught:
        binder.bind_query(parse_statement("SELECT ?"), [value])  # type: ignore[arg-type]
    assert caught.value.code == "SQL-1014"
    assert caught.value.hint


class Colour(StrEnum):
    RED = "red"


def test_values_of_libraries_and_nested_values(binder: Binder) -> None:
    values = [
        [1, None],
        (1.5,),
        {"a": 1, "b": [True]},
        {1: "x"},
        UUID(int=1),
        Colour.RED,
        bytearray(b"x"),
        np.int64(1),
        np.array([1, 2]),
        np.datetime64("2024-01-01T00:00:00"),
        pd.Timestamp("2024-01-01", tz="UTC"),
        pd.Timedelta("1 s"),
        pd.NaT,
    ]
    plan = binder.bind_query(parse_statement("SELECT " + ", ".join("?" * len(values))), values)  # type: ignore[arg-type]
    assert [str(field.type) for field in plan.schema] == [
        "ARRAY<INT>", "ARRAY<DOUBLE>", "ROW<a INT, b ARRAY<BOOLEAN>>", "MAP<INT, STRING>", "STRING", "STRING", "BINARY",
        "INT", "ARRAY<INT>", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "INTERVAL DAY TO SECOND", "NULL",
    ]  # fmt: skip


@pytest.mark.parametrize("mark", [":", "$"])
def test_names(binder: Binder, mark: str) -> None:
    query = parse_statement(
        "SELECT auction, ':n $n ?' -- :x ?\n FROM bid /* $y ? */ WHERE price > :n AND bidder::INT = :m LIMIT :n".replace(
            " :", f" {mark}"
        )
    )
    plan = binder.bind_query(query, {"n": 5, "m": 2})  # type: ignore[arg-type]
    predicates = [str(node.predicate) for node in plan.walk() if isinstance(node, Filter)]
    assert len(predicates) == 1
    assert "(price > 5.00)" in predicates[0]
    assert any("':n $n ?'" in line or ":n $n ?" in line for line in map(str, plan.schema))


@pytest.mark.parametrize(
    ("text", "values", "message", "hint"),
    [
        ("SELECT :a", [1], "parameter a has a name", 'pass a dict to execute: {"a": ..}'),
        ("SELECT :a", (), "no value is given", 'pass a dict to execute: {"a": ..}'),
        ("SELECT :limit", {"limti": 1}, "parameter limit has no value", 'did you mean "limti"?'),
        ("SELECT :a", {"zzzzzz": 1}, "parameter a has no value", 'add "a": .. to the dict'),
        ("SELECT :a", {"a": 1, "zzzzzz": 2}, 'no parameter "zzzzzz"', "its parameters: a"),
        ("SELECT ?", {"a": 1}, "have no names", "pass a list, or write :name in place of ?"),
        ("SELECT 1", {"a": 1}, 'no parameter "a"', "write :a where the value belongs"),
        ("SELECT ?, :a", {"a": 1}, "either ? or names", "write :name for every value"),
    ],
)
def test_names_and_values_must_meet(
    binder: Binder, text: str, values: list[object] | dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(PenstockError, match=re.escape(message)) as caught:
        binder.bind_query(parse_statement(text), values)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.hint) == ("SQL-1013", hint)


@pytest.mark.parametrize("text", ["CREATE VIEW v AS SELECT ? AS a", "CREATE VIEW v AS SELECT :a AS a"])
def test_a_view_takes_none(binder: Binder, text: str) -> None:
    with pytest.raises(PenstockError, match="a view is stored as text and takes no parameters") as caught:
        binder.bind_create_view(parse_statement(text))  # type: ignore[arg-type]
    assert caught.value.hint is not None
    assert "the SELECT that reads the view" in caught.value.hint
