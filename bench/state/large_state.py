"""``python -m bench.state.large_state``: how long a group aggregate's rows wait while its state grows to ten million
keys, numbers, texts or pairs, and for a whole snapshot of it. Other states grow too when they are named.
Processor time of the task's thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from bench.state.checkpoint_states import KEYS, LARGE_STATES, aggregate
from penstock.engine.task_manager.allocator import keep_freed_memory

BATCH = 65_536


def main() -> int:
    """Print the steps while the state grows, then what snapshots take; the first allocates memory that the
    others use again.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.state.large_state", description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000, help="keys of the state (10000000)")
    parser.add_argument("--snapshots", type=int, default=4, help="whole snapshots, one after the other (4)")
    parser.add_argument("--of", choices=[*KEYS, *LARGE_STATES], action="append", help="(all keys)")
    arguments = parser.parse_args()
    # as a job's process does: the arrays of a batch take freed memory again
    keep_freed_memory()
    print(f"{arguments.keys:,} keys, {BATCH:,} rows a step, ms")
    print(
        f"{'state':20} {'median':>8} {'longest':>8} {'first':>8} {'all, s':>8}   {'rows wait':>10} {'made':>8}"
    )
    for kind in arguments.of or KEYS:
        report(kind, arguments.keys, arguments.snapshots)
    return 0


def report(kind: str, count: int, snapshots: int) -> None:
    """Print a row of the steps while the state grows; then, for each snapshot, how long rows wait and what it
    takes to make it elsewhere. The first step loads kernels.
    """
    measured = aggregate(kind) if kind in KEYS else LARGE_STATES[kind]()
    keys = np.random.default_rng(1).permutation(count)
    steps = []
    for first in range(0, keys.size, BATCH):
        began = time.thread_time()
        measured.touch(keys[first : first + BATCH])
        steps.append((time.thread_time() - began) * 1e3)
    figures = f"{np.median(steps):8.1f} {max(steps[1:]):8.0f} {steps[0]:8.0f} {sum(steps) / 1e3:8.2f}"
    print(f"{kind:20} {figures}", flush=True)
    (state, *_) = measured.states.values()
    # the rows of other states are not one a key
    for _ in range(snapshots if kind in KEYS else 0):
        began = time.thread_time()
        pieces = state.freeze(None)
        frozen = time.thread_time()
        rows = sum(piece.num_rows for piece in pieces())
        assert rows == count
        del pieces
        waited, made = (frozen - began) * 1e3, (time.thread_time() - frozen) * 1e3
        print(f"{'':58} {waited:10.0f} {made:8.0f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
