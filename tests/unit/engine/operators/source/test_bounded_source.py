"""The bounded source: rows once, in pieces, exactly replayed from staged files; nothing again when it had
finished.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Services
from penstock.engine.bounded.backend import BoundedResult, Emit
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.operators.source.bounded_source import BoundedSourceOperator
from penstock.engine.storage.staged_rows import stage
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Values
from tests.harness.operator_specs import bounded_source_spec
from tests.unit.engine.operators.changelogs import Collected, context, snapshots

SCHEMA = Schema((Field("n", BIGINT),))
SPEC = bounded_source_spec("op", "bounded", SCHEMA, Values((), SCHEMA))


class Shuffled:
    """A backend whose every run gives the same numbers in another order, as a cluster does."""

    name = "shuffled"

    def __init__(self, error: PenstockError | None = None) -> None:
        self.runs = 0
        self.error = error

    def run(
        self, plan: LogicalPlan, *, staging_dir: Path | None = None, time_zone: str = "UTC"
    ) -> BoundedResult:
        self.runs += 1
        numbers = list(range(100))[:: -1 if self.runs % 2 else 1]
        batches = [pa.RecordBatch.from_pydict({"n": numbers[i : i + 30]}) for i in range(0, 100, 30)]

        def produce(emit: Emit) -> None:
            if self.error is not None:
                raise self.error
            rows: Any = batches if staging_dir is None else stage(staging_dir, batches).batches()
            for batch in rows:
                if not emit(batch):
                    return

        return BoundedResult(SCHEMA, produce, lambda: None)

    def close(self) -> None:
        """Nothing was started."""


class Backends(BoundedBackends):
    def __init__(self, backend: Shuffled) -> None:
        super().__init__(Services(), "shuffled")
        self._made["shuffled"] = backend  # type: ignore[assignment]


def opened(
    backend: Shuffled, options: JobOptions, items: list[dict[str, Any]] | None = None, subtask: int = 0
) -> BoundedSourceOperator:
    operator = BoundedSourceOperator(SPEC, options)
    at: Context = context(subtask, 2, Services(Backends(backend)))
    at.job_id = "job-1"
    operator.open(at)
    if items is not None:
        operator.restore_items(items)
    return operator


def give(operator: BoundedSourceOperator, out: Collected, batches: int | None = None) -> bool:
    """Poll until so many batches came (or to the end); return whether the source has ended."""
    while batches is None or len(out.batches) < batches:
        if operator.poll(out).ended:
            return True
        if operator._result is not None:
            operator._result.wait(5)
    return False


def numbers(out: Collected) -> list[int]:
    return [row[0] for row, _ in out.changes()]


def test_rows_come_once_in_pieces_and_from_one_subtask() -> None:
    backend, out = Shuffled(), Collected()
    assert give(opened(backend, JobOptions(batch_max_rows=8)), out)
    assert sorted(numbers(out)) == list(range(100)) and max(b.num_rows for b in out.batches) == 8
    other = Collected()
    assert give(opened(backend, JobOptions(), subtask=1), other)
    assert not other.batches and backend.runs == 1


@pytest.mark.parametrize("before", [0, 1, 3, 5, 14])
def test_restore_goes_on_exactly_where_it_was(tmp_path: Path, before: int) -> None:
    backend, options = Shuffled(), JobOptions(batch_max_rows=8, state_dir=tmp_path)
    first, second = Collected(), Collected()
    operator = opened(backend, options)
    give(operator, first, before)
    items = snapshots([operator])[1]["position"]
    given = numbers(first)
    give(operator, first, before + 2)
    operator.close()
    assert give(opened(backend, options, items), second)
    assert sorted(given + numbers(second)) == list(range(100))
    assert backend.runs <= 1 + (before == 0)


def test_a_source_that_had_finished_gives_nothing_again(tmp_path: Path) -> None:
    backend, options, out = Shuffled(), JobOptions(checkpoint_interval_ms=50, state_dir=tmp_path), Collected()
    operator = opened(backend, options)
    assert give(operator, out)
    again = Collected()
    assert give(opened(backend, options, operator.snapshot_items()), again)
    assert not again.batches and backend.runs == 1


def test_a_failed_query_fails_the_poll(tmp_path: Path) -> None:
    operator = opened(Shuffled(PenstockError("BND-5003", "no such luck")), JobOptions(state_dir=tmp_path))
    with pytest.raises(PenstockError, match="no such luck"):
        give(operator, Collected())
    operator.close()


def test_checkpoints_in_memory_stage_in_a_directory_of_the_process() -> None:
    backend, options = Shuffled(), JobOptions(batch_max_rows=8, checkpoint_interval_ms=50)
    backends = Backends(backend)
    operator = BoundedSourceOperator(SPEC, options)
    operator.open(context(0, 1, Services(backends)))
    out = Collected()
    assert give(operator, out)
    root = backends.staging_root(None, "job-1", "op")
    assert root.parents[2].is_dir()
    backends.close()
    assert not root.parents[2].exists()
