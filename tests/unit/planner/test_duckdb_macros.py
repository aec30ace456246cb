"""The macros that a statement for DuckDB needs."""

from __future__ import annotations

import duckdb

from penstock.planner.sql_generator.duckdb.macros import MACROS, macros_of


def test_a_statement_needs_what_it_calls_and_what_that_calls() -> None:
    assert macros_of("SELECT a, penstock FROM t") == macros_of("SELECT 'penstock_of_nobody'") == []
    needed = macros_of("SELECT PENSTOCK_TEXT(CAST(1e9 AS DOUBLE))")
    assert 1 < len(needed) < len(MACROS)
    assert needed == [macro for macro in MACROS if macro in needed], "in their order"
    with duckdb.connect() as connection:
        for macro in needed:
            connection.execute(macro)
        assert connection.execute("SELECT PENSTOCK_TEXT(CAST(1e9 AS DOUBLE))").fetchall() == [("1.0E9",)]


def test_each_macro_has_a_name_of_its_own() -> None:
    everything = " ".join(MACROS)
    assert macros_of(everything) == list(MACROS)
