"""The catalog: names without case, temporary over permanent, refusals with the nearest name."""

from __future__ import annotations

import pytest

from penstock.catalog.catalog import Catalog
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, View
from penstock.catalog.types import INT

COLUMNS = Schema((Field("a", INT),))


def table(name: str, *, temporary: bool = False, **options: str) -> CatalogTable:
    return CatalogTable(name, COLUMNS, COLUMNS, {"connector": "datagen", **options}, temporary=temporary)


def view(name: str, query: str = "SELECT 1") -> View:
    return View(name, query, COLUMNS)


def code(call: object, *args: object, **kwargs: object) -> str:
    with pytest.raises(PenstockError) as caught:
        call(*args, **kwargs)  # type: ignore[operator]
    return caught.value.code


def test_names_have_no_case() -> None:
    catalog = Catalog()
    catalog.create_table(table("Flights"))
    assert catalog.resolve("FLIGHTS").name == "Flights"
    assert code(catalog.create_table, table("flights")) == "SQL-1302"
    assert not catalog.create_table(table("flights"), if_not_exists=True)
    assert catalog.drop_table("flightS")
    assert catalog.names() == []


def test_unknown_names() -> None:
    catalog = Catalog()
    with pytest.raises(PenstockError) as caught:
        catalog.resolve("t")
    assert "CREATE TABLE" in (caught.value.hint or "")
    catalog.create_table(table("flights"))
    with pytest.raises(PenstockError) as caught:
        catalog.table("flihgts")
    assert caught.value.hint == 'did you mean "flights"?'
    assert code(catalog.drop_table, "x") == "SQL-1041"
    assert not catalog.drop_table("x", if_exists=True)
    assert not catalog.drop_view("x", if_exists=True)


def test_temporary_hides_permanent() -> None:
    catalog = Catalog()
    catalog.create_table(table("t"))
    catalog.create_table(table("t", temporary=True, seed="1"))
    assert catalog.table("t").temporary
    assert [relation.name for relation in catalog.permanent()] == ["t"]
    catalog.drop_table("t")
    assert not catalog.table("t").temporary


def test_tables_are_no_views() -> None:
    catalog = Catalog()
    catalog.create_table(table("t"))
    catalog.create_view(view("v"))
    assert [t.name for t in catalog.tables()] == ["t"]
    assert [v.name for v in catalog.views()] == ["v"]
    assert code(catalog.view, "t") == "SQL-1303"
    assert code(catalog.table, "v") == "SQL-1303"
    assert code(catalog.drop_view, "t") == "SQL-1303"
    assert code(catalog.create_view, view("t"), or_replace=True) == "SQL-1302"
    assert code(catalog.create_view, view("v")) == "SQL-1302"


def test_a_view_is_replaced_in_its_place() -> None:
    catalog = Catalog()
    catalog.create_view(view("v"))
    catalog.create_view(view("w"))
    assert catalog.create_view(view("V", "SELECT 2"), or_replace=True)
    assert [(v.name, v.query) for v in catalog.views()] == [("V", "SELECT 2"), ("w", "SELECT 1")]
    assert [v.name for v in catalog.permanent()] == ["V", "w"]


def test_a_changed_table_takes_the_place_of_the_old() -> None:
    catalog = Catalog()
    catalog.create_table(table("t"))
    catalog.replace_table(table("t", seed="7"), "t")
    assert catalog.table("t").options["seed"] == "7"
    catalog.create_view(view("w"))
    catalog.replace_table(table("u"), "T")
    assert [relation.name for relation in catalog.permanent()] == ["u", "w"]
    with pytest.raises(PenstockError, match='view "w" exists already'):
        catalog.replace_table(table("W"), "u")
