"""The text that seems to be NULL in a csv sample: it is proposed where it alone keeps a column from its type."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.connectors.filesystem.column_inference import FileInference
from penstock.engine.connectors.filesystem.null_literals import null_literal_advice
from penstock.engine.connectors.filesystem.sample_checks import TextSample
from penstock.engine.connectors.filesystem.text_sampling import csv_columns
from penstock.engine.formats.file_task import CsvDialect


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,b\n1,x\nNA,y\n", {"NA": ("a",)}),
        ("a,b\nNA,1\n2024-01-01,-\n", {"NA": ("a",), "-": ("b",)}),
        ("a\n2024-01-01 10:00:00\n\\N\n", {"\\N": ("a",)}),
        # a code of a country among other codes; nothing but the text; two texts, of which one option reads one
        ("a,b\nNA,1\nDE,2\n", {}),
        ("a,b\nNA,1\nNA,2\n", {}),
        ("a,b\nNA,1\nNULL,2\n3,4\n", {}),
        # one value that is no number keeps the column a text
        ("a,b\nNA,1\n2,2\nx,3\n", {}),
    ],
)
def test_a_text_is_proposed_where_the_other_values_have_a_type(
    text: str, found: dict[str, tuple[str, ...]]
) -> None:
    assert csv_columns(TextSample("x", text.encode(), True), CsvDialect(), frozenset()).null_literals == found


def test_the_text_of_most_columns_is_told_and_the_option_that_it_names_works(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,a,b,c,d,e\nx,NA,1,NA,NA,-\ny,2,NA,3.5,2024-01-01,1\n")
    options = {"connector": "filesystem", "path": str(tmp_path / "a.csv"), "format": "csv"}
    basis = FileInference().columns(options).basis
    assert basis.endswith(
        "a, b, c and 1 more are STRING because of the text NA: 'csv.null-literal' = 'NA' reads it as NULL"
    )
    found = FileInference().columns(options | {"csv.null-literal": "NA"})
    assert [str(field.type) for field in found.fields] == [
        *("STRING", "BIGINT", "BIGINT", "DOUBLE", "DATE", "STRING"),
    ]
    assert "because" not in found.basis


def test_a_column_that_is_a_text_in_one_file_only_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,a\nx,NA\ny,2\n")
    (tmp_path / "b.csv").write_text("k,a\nx,1\ny,2\n")
    basis = FileInference().columns({"connector": "filesystem", "path": str(tmp_path), "format": "csv"}).basis
    assert basis.count("a is STRING because of the text NA") == 1


def test_nothing_is_told_where_nothing_was_found() -> None:
    assert null_literal_advice({}) is None
