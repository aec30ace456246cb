"""Metamorphic relations over the queries that are shipped: MR1, MR4, MR10, MR16. Three acts (MR5) of them:
tests/streaming/three_acts, tests/streaming/nexmark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.optimizer.optimizer import RULES
from tests.generated.queries.answers import rows_of
from tests.generated.queries.generated.trial import compare, plain
from tests.harness.case_files import case_files
from tests.harness.patience import PATIENCE_S
from tests.streaming.nexmark.site import QUERIES as NEXMARK
from tests.streaming.nexmark.site import script as auction_script
from tests.streaming.three_acts.acts import Folded, Script, run_to_end
from tests.streaming.three_acts.main_job import sample
from tests.streaming.three_acts.oracle import ROOT

EVERY = 120  # of the flights
EVENTS, RATE = 2_000, 200
FLIGHTS = tuple(path.stem for path in case_files(ROOT / "queries", "*.sql"))
STRAIGHT = (1, {"execution.batch.max-rows": "1000"})
MANNERS: dict[str, tuple[int, dict[str, str]]] = {
    "MR1 batches": (1, {"execution.batch.max-rows": "37"}),
    "MR4 parallelism": (3, {"execution.batch.max-rows": "500", "pipeline.max-parallelism": "7"}),
    "MR10 without optimizer": (
        2,
        {
            "optimizer.disabled-rules": ",".join(rule.name for rule in RULES),
            "optimizer.split-aggregates": "false",
        },
    ),
}


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield sample(tmp_path_factory.mktemp("scripts") / "flights", EVERY)


def text_of(name: str, flights: Path) -> str:
    if name in NEXMARK:
        return auction_script(name, EVENTS, RATE)
    text = (ROOT / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    return text.replace("queries/data/flights'", f"{flights}'").replace(
        "queries/data/", f"{ROOT}/queries/data/"
    )


def streamed(
    name: str, flights: Path, parallelism: int, settings: dict[str, str]
) -> Counter[tuple[Any, ...]]:
    acts = Script(name, settings, text_of(name, flights))
    try:
        folded = Folded()
        run_to_end(*acts.submit(parallelism, None, 0), folded)
        return folded.rows
    finally:
        acts.close()


def bounded(name: str, flights: Path) -> Counter[tuple[Any, ...]]:
    """The query over the same rows as a table, in DuckDB as we say it or, where there are no words, on our
    runtime.
    """
    text = text_of(name, flights).replace(", 'source.replay' = 'true'", "")
    acts = Script(name, {"execution.runtime-mode": "batch"}, text)
    try:
        return rows_of(acts.session.pipeline.run(acts.query).final_rows(PATIENCE_S))
    finally:
        acts.close()


@pytest.mark.parametrize("name", [*FLIGHTS, *NEXMARK])
def test_however_it_is_run(name: str, flights: Path) -> None:
    straight = plain(streamed(name, flights, *STRAIGHT))
    assert straight or name in ("weather", "busy_planes", "growing_delays", "cancellations", "q6"), (
        "nothing to compare"
    )
    for relation, (parallelism, settings) in MANNERS.items():
        compare(streamed(name, flights, parallelism, settings), straight, f"{relation}: {name}")
    compare(bounded(name, flights), straight, f"MR16 bounded: {name}")
