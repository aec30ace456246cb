"""The reader of a split of files: batches of any size from decoded pieces, resumed at any row, with facts of the
file as columns, and bad records by the table's policy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, INT, STRING
from penstock.engine.api.operator import Services
from penstock.engine.connectors.in_process.bad_records import BadRecords
from tests.harness.length import examples
from tests.harness.reading import Taken, drain, open_source, read, resume_everywhere, table_of

ROWS = 11


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reader") / "a.csv"
    path.write_text("".join(f"{i},v{i}\n" for i in range(ROWS)), encoding="utf-8")
    return path


def table(path: Path, **options: str) -> Any:
    more = {key.replace("_", "-"): value for key, value in options.items()}
    return table_of(
        {"n": INT, "v": STRING},
        {"connector": "filesystem", "path": str(path), "format": "csv", "csv.header": "false", **more},
        metadata={"row": ("file.row", BIGINT), "name": ("file.name", STRING), "size": ("file.size", BIGINT)},
    )


def expected(path: Path) -> list[dict[str, Any]]:
    size = path.stat().st_size
    return [{"n": i, "v": f"v{i}", "row": i, "name": "a.csv", "size": size} for i in range(ROWS)]


@settings(max_examples=examples(15), deadline=None, derandomize=True)
@given(batch=st.integers(1, ROWS + 1))
def test_rows_and_facts_of_the_file_are_the_same_in_any_batches_and_resumed_anywhere(
    file: Path, batch: int
) -> None:
    assert read(table(file), batch=batch) == expected(file)
    resume_everywhere(table(file), expected(file), batch=batch)


def test_columns_come_in_the_order_that_is_asked_for(file: Path) -> None:
    assert read(table(file), columns=["row", "v"])[3] == {"row": 3, "v": "v3"}
    out = drain(open_source(table(file), columns=[]))
    assert sum(batch.num_rows for batch in out.batches) == ROWS


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text("0,a\nx,b\n2,c\n", encoding="utf-8")
    return tmp_path / "a.csv"


def test_a_bad_record_is_refused_with_its_place(broken: Path) -> None:
    with pytest.raises(PenstockError, match="DAT-4201") as caught:
        read(table(broken))
    assert "row 2" in caught.value.message and "column n" in caught.value.message
    assert "x,b" in str(caught.value.detail)


@pytest.mark.parametrize("policy", ["skip", "table"])
def test_a_bad_record_is_skipped_and_counted_or_stored_once(broken: Path, policy: str) -> None:
    records = BadRecords()
    made, out = table(broken, on_error=policy), Taken()
    operator = open_source(made, batch=1, services=Services(records))
    drain(operator, out)
    assert [(row["n"], row["row"]) for row in out.rows] == [(0, 0), (2, 2)], "rows keep their numbers"
    assert operator._context.metrics.counters["bad_records"] == 1
    assert records.total("t") == (1 if policy == "table" else 0)
