"""Parameters are literals of the Python value's SQL type."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

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


def test_a_type_without_sql_is_refused(binder: Binder) -> None:
    with pytest.raises(PenstockError, match="Python type list") as caught:
        binder.bind_query(parse_statement("SELECT ?"), [[1]])  # type: ignore[arg-type]
    assert caught.value.code == "SQL-1014"


def test_a_view_takes_none(binder: Binder) -> None:
    with pytest.raises(PenstockError, match="1 parameter, 0 are given"):
        binder.bind_create_view(parse_statement("CREATE VIEW v AS SELECT ? AS a"))  # type: ignore[arg-type]
