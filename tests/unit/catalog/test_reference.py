"""Every example of the reference returns what it says, and the pages list all there is. That they are up to date
is tested in tests/test_house.py.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.connectors.registry import CONNECTORS
from penstock.catalog.declared_settings import SETTINGS
from penstock.catalog.functions.aggregate import AGGREGATES
from penstock.catalog.functions.examples import (
    AGGREGATE_EXAMPLES,
    SAMPLE,
    SCALAR_EXAMPLES,
    TABLE_EXAMPLES,
    WINDOW_EXAMPLES,
)
from penstock.catalog.functions.registry import SCALAR_FAMILIES
from penstock.catalog.functions.table import TABLE_FUNCTIONS
from penstock.catalog.functions.window import WINDOW_FUNCTIONS
from penstock.catalog.reference import PAGES, connectors_page, settings_page, write_pages
from penstock.client.session import Session
from penstock.repl.output.cell_text import text_column


def test_pages_are_written(tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(PAGES)


def test_every_setting_and_every_option_is_listed() -> None:
    settings, connectors = settings_page(), connectors_page()
    assert all(f"| `{key}` |" in settings for key in SETTINGS)
    for connector in CONNECTORS.values():
        section = f"## {connector.name}\n"
        assert (section in connectors) is not connector.internal
        if not connector.internal:
            written = connectors.split(section)[1].split("\n## ")[0]
            assert all(f"| `{option.key}` |" in written for option in connector.options)


def test_every_function_has_an_example_and_every_example_a_function() -> None:
    assert {f.name for family in SCALAR_FAMILIES.values() for f in family} == set(SCALAR_EXAMPLES)
    assert {f.name for f in AGGREGATES} - {"sum0"} == set(AGGREGATE_EXAMPLES)
    assert {f.name for f in WINDOW_FUNCTIONS} == set(WINDOW_EXAMPLES)
    assert {f.name.lower() for f in TABLE_FUNCTIONS} == set(TABLE_EXAMPLES)


def answers(session: Session, query: str) -> list[list[str]]:
    """The texts of the columns of a query, as the shell prints them."""
    (statement,) = session.parse(query)
    result = session.run(statement)
    table = pa.Table.from_batches(list(result.batches()))
    columns = [text_column(column.combine_chunks(), "UTC").to_pylist() for column in table.columns]
    return [["NULL" if text is None else text for text in column] for column in columns]


@pytest.fixture(scope="module")
def session():
    session = Session({"bounded.backend": "duckdb", "table.local-time-zone": "UTC"})
    yield session
    session.close()


@pytest.mark.parametrize("mode", ["automatic", "streaming"])
def test_examples_of_scalar_functions(session: Session, mode: str) -> None:
    """All of them are columns of one row, by DuckDB and by our own kernels."""
    calls = ", ".join(f"{call} AS c{i}" for i, (call, _) in enumerate(SCALAR_EXAMPLES.values()))
    session.execute(f"SET 'execution.runtime-mode' = '{mode}'")
    columns = answers(session, f"SELECT {calls}")
    session.execute("RESET 'execution.runtime-mode'")
    wrong = {
        call: (column[0], answer)
        for column, (call, answer) in zip(columns, SCALAR_EXAMPLES.values(), strict=True)
        if column != [answer]
    }
    assert not wrong


@pytest.mark.parametrize("examples", [AGGREGATE_EXAMPLES, WINDOW_EXAMPLES], ids=["aggregates", "windows"])
def test_examples_over_the_sample(session: Session, examples: dict[str, tuple[str, str]]) -> None:
    calls = ", ".join(f"{call} AS c{i}" for i, (call, _) in enumerate(examples.values()))
    columns = answers(session, f"SELECT {calls} FROM {SAMPLE}")
    wrong = {
        call: (column, answer)
        for column, (call, answer) in zip(columns, examples.values(), strict=True)
        if "; ".join(column) != answer and sorted(column) != sorted(answer.split("; "))
    }
    assert not wrong


def test_examples_of_table_functions(session: Session) -> None:
    for query, answer in TABLE_EXAMPLES.values():
        rows = zip(*answers(session, query), strict=True)
        assert "; ".join(", ".join(row) for row in rows) == answer, query
