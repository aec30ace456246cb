"""How tests are dealt to the processes that run them: a file's tests stay together, and all that need Java
share one virtual machine, but for those that start a Spark of their own. Files that share a server name its
group themselves.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
from typing import Any

import pytest
from hypothesis import settings

from tests.harness.length import AT_LENGTH, left_out
from tests.harness.server_process import end_spark_with_this_process

LONGEST_FIRST = (
    "tests/test_house.py",
    "tests/generated/queries/",
    "tests/sql/bad_inputs/",
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

OWN_SPARK = ("tests/unit/engine/deploy/spark/", "tests/unit/engine/bounded/spark/test_keep_alive.py")
"""Start Sparks of their own: of another master, or in processes of their own."""

KILLS_SPARK = "tests/unit/engine/bounded/spark/test_watchdog.py"
"""Kills the Java machine that the others share, and is run behind them: a new one takes seconds to be quick."""

SERVERS = {
    "tests/unit/engine/connectors/kafka/": "kafka",
    "tests/unit/engine/connectors/postgres_cdc/": "postgres-cdc",
}
"""Folders whose tests share a server, under the name other files have for it."""

# make test goes one way; make soak draws anew each time
if not AT_LENGTH:
    settings.register_profile("brief", derandomize=True, database=None)
    settings.load_profile("brief")

# the search for garbage takes a tenth of the time of imports, which make none; pytest_collection_finish begins it
gc.disable()


def pytest_collection(session: pytest.Session) -> None:
    """Import a share of the test files, which writes their bytecode; then pytest imports all.

    To rewrite the assertions of all files takes 20 seconds. Without shares each process does so in a new
    checkout, for all begin with the same file.
    """
    dealt: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if dealt is None:
        return
    root = session.config.rootpath
    places = [root / argument.partition("::")[0] for argument in session.config.args]
    files = sorted(
        {file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))}
    )
    for file in files[int(dealt["workerid"][2:]) :: dealt["workercount"]]:
        # pytest imports a file that fails again, and reports why
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    rare = left_out(item.nodeid for item in items)
    for item in items:
        if item.nodeid in rare:
            item.add_marker(pytest.mark.at_length)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.longer)
    if not AT_LENGTH:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("at_length")])
        items[:] = [item for item in items if not item.get_closest_marker("at_length")]
    for item in items:
        for folder, server in SERVERS.items():
            if item.nodeid.startswith(folder) and not item.get_closest_marker("xdist_group"):
                item.add_marker(pytest.mark.xdist_group(server))
    items.sort(key=_turn)
    for item in items:
        # pytest-xdist joins the names of all groups of a test, which would part those that share a server
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(_group(item, item.nodeid.partition("::")[0])))


def _group(item: pytest.Item, file: str) -> str:
    if not item.get_closest_marker("spark"):
        return file
    return "java of their own" if file.startswith(OWN_SPARK) else "java"


def _turn(item: pytest.Item) -> float:
    if item.get_closest_marker("spark"):
        return -1 + (item.nodeid.startswith(OWN_SPARK) / 2) + (item.nodeid.startswith(KILLS_SPARK) / 4)
    if item.get_closest_marker("xdist_group"):
        return -0.25  # many files that one process runs
    return next(
        (place for place, begins in enumerate(LONGEST_FIRST) if item.nodeid.startswith(begins)),
        len(LONGEST_FIRST),
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage seldom, and never among what was imported: it takes a tenth of all time else."""
    _compile_a_share(session.config)
    end_spark_with_this_process()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


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
