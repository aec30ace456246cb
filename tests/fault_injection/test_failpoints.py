"""The swept job dies or fails at every failpoint, in the simulation: its files are DuckDB's answer, none
is left over. Processes: ``failpoints``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.engine.api.failpoints import POINTS
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.job.job_state import JobState
from penstock.engine.operators.sink import SinkOperator
from tests.fault_injection.swept import NOT_HERE, PARALLELISM, Plans, meaningful, sweep
from tests.fault_injection.swept_job import expected, write_input

KILLED = [point for point in POINTS if meaningful(point, "kill")]
FAILED = [point for point in POINTS if meaningful(point, "raise")]


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plans]:
    root = tmp_path_factory.mktemp("swept")
    write_input(root, 1)
    made = Plans(root, root / "state")
    yield made
    made.close()


def wrong(
    plans: Plans, point: str, does: str, parallelism: tuple[int, int], times: int = 1, unaligned: bool = False
) -> list[str]:
    """Return what a run that was hit at a point has got wrong."""
    swept = sweep(plans, point, does, parallelism, times=times, unaligned=unaligned)
    facts = {
        f"{point} was not reached": not swept.reached,
        f"the job is {swept.state}": swept.state is not JobState.FINISHED,
        "other rows than DuckDB's": swept.rows != expected(plans.root),
        f"left over: {swept.left}": bool(swept.left),
    }
    return [sentence for sentence, is_so in facts.items() if is_so]


@pytest.mark.parametrize("point", KILLED)
def test_killed_at_a_point_it_goes_on_exactly(plans: Plans, point: str) -> None:
    parallelism = PARALLELISM[KILLED.index(point) % 2]
    assert not wrong(plans, point, "kill", parallelism, times=2 if point == "R2b" else 1)


@pytest.mark.parametrize("point", ["C4", "C8", "C12", "W2", "W6", "W9", "S4", "R2"])
def test_killed_with_unaligned_checkpoints_it_goes_on_exactly(plans: Plans, point: str) -> None:
    assert not wrong(plans, point, "kill", (2, 3), unaligned=True)


@pytest.mark.parametrize("point", FAILED)
def test_failed_at_a_point_it_goes_on_exactly(plans: Plans, point: str) -> None:
    assert not wrong(plans, point, "raise", PARALLELISM[(FAILED.index(point) + 1) % 2][:1] * 2)


def test_all_points_are_swept() -> None:
    assert POINTS.keys() - set(KILLED) == set(NOT_HERE)


def test_pending_commits_forgotten_on_restore_are_seen(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SinkOperator, "restore_items", lambda self, items: None)
    assert any(
        "other rows than DuckDB's" in wrong(plans, point, "kill", (1, 1)) for point in ("S4", "S5", "R2")
    )


def test_files_never_deleted_are_seen(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckpointStore, "_collect_garbage", lambda self, *, above_too: None)
    assert any(sentence.startswith("left over") for sentence in wrong(plans, "C8", "kill", (1, 1)))
