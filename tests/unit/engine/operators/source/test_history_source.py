"""The operators of a history: a chain inside an operator reads exactly the splits it is handed, and the source that
comes after a history takes its splits for finished.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.source.history_source import REST_MS, FinishedSplitsOperator, SubChain
from penstock.planner.expressions.nodes import Column
from penstock.planner.physical.operator_specs import FinishedSplits, OperatorSpec
from tests.harness.operator_specs import calc_spec, source_spec
from tests.harness.operators import Remembered, opened
from tests.harness.reading import drain, open_source, table_of
from tests.unit.optimizer.plans import call, lit


@pytest.fixture
def files(tmp_path: Path) -> CatalogTable:
    """Three files of the numbers below 23 by their remainder."""
    for remainder in range(3):
        lines = "".join(f"{n}\n" for n in range(remainder, 23, 3))
        (tmp_path / f"{remainder}.csv").write_text(lines)
    options = {"connector": "filesystem", "format": "csv", "csv.header": "false", "path": str(tmp_path)}
    return table_of({"n": BIGINT}, options)


def splits_of(files: CatalogTable) -> list[str]:
    """The splits of the files with remainder 0, 1 and 2."""
    operator = open_source(files)
    drain(operator)
    return sorted(item["split"] for item in operator.snapshot_items())


def outer() -> Context:
    return opened(FinishedSplitsOperator(finished(()), JobOptions()))


def finished(splits: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec("op1", "position behind the history", Schema(()), FinishedSplits(splits))


def sub_chain(files: CatalogTable, splits: list[str]) -> SubChain:
    """A source and a filter ``n >= 5``."""
    schema = files.source_schema
    least = call("greater_equal", Column(BIGINT, True, index=0, name="n"), lit(5, BIGINT))
    specs = [
        source_spec("op1", "source", schema, files, (0,), None),
        calc_spec("op2", "filter", schema, least, None),
    ]
    return SubChain(specs, JobOptions(batch_max_rows=4), outer(), splits, build_operator)


def test_a_sub_chain_reads_its_splits_and_no_others(files: CatalogTable) -> None:
    first, _, third = splits_of(files)
    chain, batches = sub_chain(files, [third, first]), []
    while chain.step():
        batches += chain.drain()
    batches += chain.drain() + chain.ended()
    # each batch is labelled with the split it comes from
    by_split = {
        split: sorted(n for name, batch in batches if name == split for n in batch.rows.column(0).to_pylist())
        for split in {name for name, _ in batches}
    }
    assert by_split == {first: list(range(6, 23, 3)), third: list(range(5, 23, 3))}
    assert chain.time_us == 2**63 - 1, "the end of input is the end of time"
    chain.close()
    chain.close()


def test_a_history_ends_with_its_splits_finished_for_the_source_behind_it(files: CatalogTable) -> None:
    splits = splits_of(files)
    operator = FinishedSplitsOperator(finished(tuple(splits)), JobOptions())
    context = opened(operator)
    status = operator.poll(Remembered())
    assert status.rests and not status.ended and status.wake_ms == context.clock.monotonic_ms() + REST_MS
    # nothing is restored into it: a history starts anew
    operator.restore_items([{"split": splits[0], "position": None, "finished": False}])
    source = open_source(files)
    source.restore_items(operator.snapshot_items())
    assert drain(source).rows == []
    assert sorted(source.snapshot_items(), key=str) == sorted(operator.snapshot_items(), key=str)
