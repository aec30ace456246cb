"""The jobs of the simulation and their answers: windows of four kinds by the real operators, and a window
sum of a few lines.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.engine.job.job_state import JobState
from penstock.planner.logical.distribution import Partition
from penstock.planner.physical.operator_specs import JobGraph
from tests.harness.runtime import fakes, real_windows
from tests.harness.runtime.fakes import Faults, Ledger, Row, make_splits, window_job
from tests.simulation.cluster import Cluster, SimulatedJob
from tests.simulation.knobs import Fixed
from tests.simulation.wires import Trouble

REAL_SPLITS = make_splits(3, 40, 4)
PLAIN_SPLITS = make_splits(3, 60, 4)
HEALED_STEPS = 60_000
ANSWERS = [real_windows.expected(REAL_SPLITS, window) for window in real_windows.WINDOWS]
PLAIN_ANSWER = fakes.expected(PLAIN_SPLITS, 10)


def plain_graph(random: Random) -> JobGraph:
    """A plan of the plain window sum."""
    parallelism, sources = random.choice([1, 2, 3]), random.choice([1, 2, 3])
    edge = None if random.random() < 0.5 else Partition((0,))
    return window_job(
        PLAIN_SPLITS,
        parallelism=parallelism,
        sources=sources,
        batch_rows=random.choice([1, 3, 10]),
        sink_edge=edge,
    )


def is_real(seed: int) -> bool:
    """Whether a seed runs the real window operators: a fourth of them do."""
    return seed % 4 == 0


def answer(seed: int, *, real: bool | None = None) -> Counter[Row]:
    """Return what a seed's job must give."""
    return ANSWERS[seed // 4 % len(ANSWERS)] if (is_real(seed) if real is None else real) else PLAIN_ANSWER


def simulate(
    seed: int,
    *,
    steps: int = 5_000,
    healed_steps: int = HEALED_STEPS,
    real: bool | None = None,
    fixed: Fixed | None = None,
    trouble: Trouble | None = None,
) -> tuple[Cluster, Counter[Row]]:
    """Run a seed to its end; return the cluster and the rows its sink committed. AssertionError when it has
    not ended ``healed_steps`` after the faults, or is refused for no reason.

    ``fixed`` and ``trouble``: what is not left to chance, as ``knobs.draw`` takes it.
    """
    cluster, ledger = begun(seed, real=real, fixed=fixed, trouble=trouble)
    state = cluster.run(faulty_steps=steps, healed_steps=healed_steps)
    assert cluster.wrong is None, f"seed {seed}: {cluster.wrong}"
    assert state is JobState.FINISHED, f"seed {seed} has not ended {healed_steps} steps after healing"
    return cluster, ledger.rows()


def begun(
    seed: int, *, real: bool | None = None, fixed: Fixed | None = None, trouble: Trouble | None = None
) -> tuple[Cluster, Ledger]:
    """Return a seed's cluster before its first step, and where its sink commits."""
    ledger = Ledger()
    outside = (ledger, Faults())
    if is_real(seed) if real is None else real:
        window = real_windows.WINDOWS[seed // 4 % len(real_windows.WINDOWS)]
        job = SimulatedJob(
            lambda random: real_windows.real_job(REAL_SPLITS, window, random), real_windows.build, outside
        )
    else:
        job = SimulatedJob(plain_graph, fakes.build, outside)
    return Cluster(seed, job, fixed or {}, trouble), ledger
