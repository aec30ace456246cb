"""The allocator keeps what is freed: a second array of the same size needs no new pages."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# five arrays of this size are more than glibc keeps by itself, one is less than what it always maps
_BYTES, _ARRAYS, _ROUNDS = 20 << 20, 5, 4


def faults() -> int:
    """Return the page faults of filling and freeing some arrays again and again, the first time aside."""
    fill()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(_ROUNDS):
        fill()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def fill() -> None:
    arrays = [np.ones(_BYTES, np.int8) for _ in range(_ARRAYS)]
    arrays.clear()


def in_new_process(keeps: bool) -> int:
    """Return the faults in a process that keeps freed memory, or does not."""
    script = (
        "from penstock.engine.task_manager.allocator import keep_freed_memory\n"
        "from tests.unit.engine.task_manager import test_allocator as here\n"
        f"assert not {keeps} or keep_freed_memory()\n"
        "print(here.faults())"
    )
    root = Path(__file__).resolve().parents[4]
    words = [sys.executable, "-c", script]
    return int(subprocess.run(words, cwd=root, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no mallopt")
def test_freed_memory_is_used_again() -> None:
    # the negative control first: without it pages are returned, and faulted in again
    usual = in_new_process(False)
    assert usual >= 2 * _ROUNDS
    assert in_new_process(True) <= usual // 4


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no mallopt")
@pytest.mark.parametrize(("chosen", "used"), [(None, "system"), ("mimalloc", "mimalloc")])
def test_arrow_allocates_from_the_same_memory_unless_the_user_chose(chosen: str | None, used: str) -> None:
    script = (
        "import pyarrow as pa\n"
        "from penstock.engine.task_manager.allocator import keep_freed_memory\n"
        "assert keep_freed_memory()\n"
        "print(pa.default_memory_pool().backend_name)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "ARROW_DEFAULT_MEMORY_POOL"}
    environment |= {} if chosen is None else {"ARROW_DEFAULT_MEMORY_POOL": chosen}
    found = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment
    )
    assert found.stdout.strip() == used
