"""``python -m bench.state.large_state``: how long a group aggregate's rows wait while its state grows to ten million
keys, and for a whole snapshot of it. Processor time of the task's thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from bench.state.checkpoint_states import aggregate

BATCH = 65_536


def main() -> int:
    """Print the steps while the state grows, then what snapshots take; the first allocates memory that the
    others use again.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.state.large_state", description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000, help="keys of the state (10000000)")
    parser.add_argument("--snapshots", type=int, default=4, help="whole snapshots, one after the other (4)")
    arguments = parser.parse_args()
    measured = aggregate()
    keys = np.random.default_rng(1).permutation(arguments.keys)
    steps = []
    for first in range(0, keys.size, BATCH):
        began = time.thread_time()
        measured.touch(keys[first : first + BATCH])
        steps.append((time.thread_time() - began) * 1e3)
    print(
        f"{arguments.keys:,} keys, {BATCH:,} rows a step: median {np.median(steps):.1f} ms, longest "
        f"{max(steps[1:]):.0f} ms (the first, which loads kernels, {steps[0]:.0f}), {sum(steps) / 1e3:.2f} s in all",
        flush=True,
    )
    (state,) = measured.states.values()
    print(f"{'whole snapshot':>15} {'rows wait ms':>13} {'made elsewhere ms':>18}")
    for number in range(arguments.snapshots):
        began = time.thread_time()
        pieces = state.freeze(None)
        frozen = time.thread_time()
        rows = sum(piece.num_rows for piece in pieces())
        assert rows == arguments.keys
        print(
            f"{number + 1:15} {(frozen - began) * 1e3:13.0f} {(time.thread_time() - frozen) * 1e3:18.0f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
