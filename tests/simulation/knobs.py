"""What a seed draws before anything happens: how the job is run, and which faults there are, how often.
Not all of them in any one seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.restart_strategy import ExponentialDelay, FailureRate, FixedDelay, RestartStrategy
from tests.simulation.wires import Trouble

Fixed = dict[str, Any]

BARRIERS: tuple[Fixed, ...] = (
    {},
    {"unaligned": True},
    {"unaligned": True, "aligned_timeout_ms": 1},
    {"unaligned": True, "aligned_timeout_ms": 5},
    {"unaligned": True, "aligned_timeout_ms": 25},
)
"""The ways barriers may go, each of them exact."""
FOREVER = 1_000_000
RESTARTS: tuple[RestartStrategy, ...] = (
    FixedDelay(attempts=FOREVER, delay=5.0),
    ExponentialDelay(attempts=FOREVER, window_ms=60_000.0, delay=1.0, max_delay=50.0),
    FailureRate(attempts=FOREVER, window_ms=1_000.0, delay=2.0),
)
FAULTS = {
    "coordinator killed": (0.0, 0.0002, 0.001),
    "worker killed": (0.0, 0.0005, 0.002),
    "worker stopped": (0.0, 0.0, 0.0005),
    "power lost": (0.0, 0.0, 0.0003),
    "coordinator taken over": (0.0, 0.0002, 0.0005),
    "task failed": (0.0, 0.0005, 0.002),
    "link cut": (0.0, 0.0, 0.001),
    "checkpoint given up": (0.0, 0.0, 0.002),
    "rescale": (0.0005, 0.001, 0.003),
    "bit flipped": (0.0, 0.0, 0.0005),
    "disk full": (0.0, 0.0, 0.0005),
    "clock jumped": (0.0, 0.0, 0.001),
}
"""What may befall nodes, by how likely at any step, of which a seed has one each."""


@dataclass(frozen=True)
class Knobs:
    """A seed's settings.

    ``slow_chain``: whose tasks take their time. ``rates``: of ``FAULTS``. ``dies``: how likely a node dies at
    an operation of storage. ``merges``: whether gates merge queued batches; without that more rows are in
    flight.
    """

    options: JobOptions
    retained: int
    slow_chain: int | None
    rates: dict[str, float]
    dies: float
    merges: bool
    trouble: Trouble


def draw(random: Random, fixed: Fixed, trouble: Trouble | None) -> Knobs:
    """Draw everything; ``fixed`` are fields of the job's options and ``trouble`` is what befalls bytes
    where that is not left to chance.
    """
    drawn = {
        "name": "simulated",
        "batch_max_rows": random.choice([1, 4, 100]),
        "buffer_timeout_ms": random.choice([0, 1, 20]),
        "checkpoint_interval_ms": random.choice([3, 10, 40]),
        "checkpoint_timeout_ms": random.choice([30, 200, 10_000]),
        "checkpoint_min_pause_ms": random.choice([0, 5]),
        "channel_capacity": random.choice([1, 2, 8]),
        "restart": random.choice(RESTARTS),
        "tolerable_failed_checkpoints": random.choice([5, FOREVER, FOREVER, FOREVER]),
        "incremental_checkpoints": random.random() < 0.7,
        "deployment": "processes" if random.random() < 0.7 else "embedded",
        "task_slots": random.choice([1, 1, 2]),
        "heartbeat_timeout_ms": random.choice([400, 2_000]),
        **random.choice(BARRIERS),
    }
    drawn_trouble = Trouble(
        late=random.choice([0.0, 0.02, 0.2]),
        twice=random.choice([0.0, 0.0, 0.1]),
        cut=random.choice([0.0, 0.0, 0.0005]),
        changed=random.choice([0.0, 0.0, 0.0005]),
        repeated=random.choice([0.0, 0.0, 0.0005]),
        late_ms=random.choice([2.0, 20.0]),
    )
    return Knobs(
        options=JobOptions(**{**drawn, **fixed}),
        retained=random.choice([2, 3]),
        slow_chain=random.choice([None, None, 0, 1, 2]),
        rates={name: random.choice(choices) for name, choices in FAULTS.items()},
        dies=random.choice([0.0, 0.001, 0.005]),
        merges=random.random() < 0.1,
        trouble=drawn_trouble if trouble is None else replace(trouble),
    )
