"""Every function of Spark 4 and of Flink 2.3 is ours, or the page says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql.functions_of_others.names import FLINK, SPARK, WHY_NOT
from tests.sql.functions_of_others.page import KNOWN, count, page

PAGE = Path(__file__).parents[3] / "docs" / "FUNCTIONS_OF_OTHERS.md"


@pytest.mark.parametrize("names", [SPARK, FLINK], ids=["spark", "flink"])
def test_each_is_ours_or_has_a_reason(names: list[str]) -> None:
    assert len(set(names)) == len(names)
    assert [name for name in names if name not in KNOWN and name not in WHY_NOT] == []
    ours, total = count(names)
    assert ours > 0.75 * total


def test_a_reason_is_of_a_function_that_is_not_ours() -> None:
    assert [name for name in WHY_NOT if name in KNOWN] == []
    assert set(WHY_NOT) <= {*SPARK, *FLINK}


def test_the_page_is_what_the_names_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.sql.functions_of_others.page docs"
