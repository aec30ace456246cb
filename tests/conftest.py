"""How tests are dealt to the processes that run them: a file's tests stay together, and all that need Java
share one virtual machine.
"""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.harness.length import AT_LENGTH

LONGEST_FIRST = (
    "tests/generated/queries/test_generated.py",
    "tests/simulation/",
    "tests/streaming/nexmark/",
    "tests/streaming/worker_processes/",
    "tests/unit/engine/deploy/",
    "tests/streaming/databases/",
    "tests/streaming/three_acts/",
    "tests/fault_injection/",
    "tests/state_machines/",
)
"""Where a process that is given it last would work alone for long."""

OWN_SPARK = "tests/unit/engine/deploy/spark/test_hosted_jobs.py"
"""Starts a Spark of another master, so the one the others share is ended first."""


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not AT_LENGTH:
        left_out = [item for item in items if item.get_closest_marker("at_length")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("at_length")]
    for item in items:
        file = item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group("java" if item.get_closest_marker("spark") else file))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> float:
    if item.get_closest_marker("spark"):
        return -1 + (item.nodeid.startswith(OWN_SPARK) / 2)
    return next(
        (place for place, begins in enumerate(LONGEST_FIRST) if item.nodeid.startswith(begins)),
        len(LONGEST_FIRST),
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage seldom, and never among what was imported: it takes a tenth of all time else."""
    _compile_a_share(session.config)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _compile_a_share(config: pytest.Config) -> None:
    """Compile kernels that no run before has: each process some of them, instead of all when tests meet
    them.
    """
    dealt: dict[str, Any] | None = getattr(config, "workerinput", None)
    if dealt is not None:
        from penstock.engine.kernels.precompile import every_kernel

        for kernel in every_kernel()[int(dealt["workerid"][2:]) :: dealt["workercount"]]:
            kernel.load()


def pytest_unconfigure() -> None:
    """Let what was kept from the search be found at the end, or libraries complain of leaks."""
    gc.unfreeze()
