"""Jobs of one name write to one table at once and die at the steps of the protocol: each one's rows are
there once. Processes: ``shared-table``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fault_injection.shared_table import faults, share
from tests.fault_injection.swept import Plans
from tests.fault_injection.swept_job import expected, write_input


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plans]:
    root = tmp_path_factory.mktemp("shared")
    write_input(root, 2)
    made = Plans(root, root / "state")
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(8))
def test_each_jobs_rows_are_there_once(plans: Plans, seed: int) -> None:
    jobs = 2 + seed % 3
    shared = share(plans, seed, jobs)
    assert not faults(shared, expected(plans.root), jobs)
    assert shared.kills >= 3


def test_jobs_of_one_identity_are_seen(plans: Plans) -> None:
    """The control: jobs that take one another's staged files for their own."""
    assert any(
        faults(share(plans, seed, 3, owner_of=lambda number: "one"), expected(plans.root), 3)
        for seed in range(3)
    )
