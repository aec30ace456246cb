"""The language over bounded tables: our runtime, folded, DuckDB and Spark give one answer. All of it:
``python -m tests.generated.queries.bounded_corpus``. Each 128th query here, each eighth with ``make soak``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark.java_runtime import find_java
from tests.generated.queries.bounded_corpus import (
    Asked,
    asked_of_flights,
    asked_of_scripts,
    asked_of_status,
    excuse,
    tell,
    workplace,
)
from tests.harness.length import of_length
from tests.streaming.three_acts.main_job import sample
from tests.test_docs import MODULE

EVERY = of_length(128, 8)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield workplace(tmp_path)
    sys.modules.pop(MODULE, None)


def backends() -> tuple[str, ...]:
    try:
        find_java()
    except PenstockError:
        return ("duckdb",)
    return ("duckdb", "spark")


def check(corpus: Iterator[Asked], least: int) -> None:
    told = [answer for asked in corpus if excuse(asked) is None for answer in tell(asked, backends())]
    wrong = [
        f"{answer.backend}: {answer.asked.about}: {answer.asked.text}\n  {answer.verdict}"
        for answer in told
        if answer.verdict != "equal"
    ]
    assert not wrong, "\n".join(wrong)
    assert len(told) >= least * len(backends()) and any(answer.rows for answer in told)


@pytest.mark.spark
@pytest.mark.longer
def test_the_page_of_the_language(place: Path) -> None:
    check(asked_of_status(EVERY, "projection, filter, CASE, CAST, TRY_CAST"), 80 // EVERY)


@pytest.mark.spark
@pytest.mark.longer
def test_golden_scripts(place: Path) -> None:
    check(asked_of_scripts(EVERY), 80 // EVERY)


@pytest.mark.spark
def test_queries_on_flights(place: Path) -> None:
    check(asked_of_flights(sample(place / "flights", 1200), 4), 2)
