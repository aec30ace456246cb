"""The main job gives DuckDB's answer however it is run: any parallelism, any batch size, any checkpoint
interval, and in batch mode.

Batches run over samples of the year here: ``test_three_acts.py`` runs all of it, and so does ``make soak``.
Three of the six pairs are run here, so that each value is met; all of them by ``make soak``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.length import AT_LENGTH, briefly, of_length
from tests.streaming.three_acts.main_job import rows_in, run, sample
from tests.streaming.three_acts.oracle import FLIGHTS, assert_same

PAIRS = ((1, 0, "0"), (1, 1, "50 ms"), (2, 0, "50 ms"), (2, 1, "0"), (2, 0, "1 s"), (1, 1, "1 s"))
"""Parallelism, which of two sizes of a batch, checkpoint interval: any two of them meet."""


def matrix(sizes: tuple[int, int]) -> list[Any]:
    """Return the cases of two sizes of a batch; in brief three that have each value."""
    cases = [(parallelism, sizes[size], interval) for parallelism, size, interval in PAIRS]
    return briefly(cases, [cases[1], cases[3], cases[4]])


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample(tmp_path_factory.mktemp("few") / "flights", 800)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each fourth flight of the year, the whole year at length."""
    return of_length(sample(tmp_path_factory.mktemp("many") / "flights", 8), FLIGHTS)


def check(flights: Path, tmp_path: Path, parallelism: int, max_rows: int, interval: str) -> None:
    settings = {
        "parallelism.default": str(parallelism),
        "execution.batch.max-rows": str(max_rows),
        "execution.checkpointing.interval": interval,
    }
    run(flights, tmp_path / "out", settings, None if interval == "0" else tmp_path / "state")
    assert_same(rows_in(tmp_path / "out"), "flights", flights)


@pytest.mark.parametrize(("parallelism", "max_rows", "interval"), matrix((1, 7)))
def test_small_batches(few: Path, tmp_path: Path, parallelism: int, max_rows: int, interval: str) -> None:
    check(few, tmp_path, parallelism, max_rows, interval)


@pytest.mark.longer
@pytest.mark.parametrize(("parallelism", "max_rows", "interval"), matrix((1_000, 1_000_000)))
def test_large_batches(many: Path, tmp_path: Path, parallelism: int, max_rows: int, interval: str) -> None:
    check(many, tmp_path, parallelism, max_rows, interval)


@pytest.mark.longer
@pytest.mark.parametrize("backend", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_batch_mode(few: Path, tmp_path: Path, backend: str) -> None:
    flights = few if backend == "spark" and not AT_LENGTH else FLIGHTS
    run(flights, tmp_path / "out", {"execution.runtime-mode": "batch", "bounded.backend": backend})
    assert_same(rows_in(tmp_path / "out"), "flights", flights)


@pytest.mark.spark
def test_the_bounded_side_on_spark(tmp_path: Path) -> None:
    run(
        FLIGHTS,
        tmp_path / "out",
        {"bounded.backend": "spark", "parallelism.default": "2"},
        tmp_path / "state",
    )
    assert_same(rows_in(tmp_path / "out"), "flights")
