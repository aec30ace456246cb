"""Options of one job: plain values, checked once, passed to every operator."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.cluster_options import ClusterOptions, SettingValues
from penstock.engine.api.locations import Location, parse_location
from penstock.engine.api.restart_strategy import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartStrategy,
)

RUNNING = "RUNNING"
SUSPENDED = "SUSPENDED"


@dataclass(frozen=True)
class JobRecord:
    """The record of a job: its name, the statements before it, its own statement, and their settings.

    ``status``: RUNNING until the job has ended; it stays so when the process dies. SUSPENDED: the process
    ended in order, and the next one resumes the job. ``withheld``: the statements hold secrets and are not
    written.
    """

    name: str
    statements: tuple[str, ...]
    statement: str
    settings: tuple[tuple[str, str], ...]
    started_at_ms: int = 0
    epoch: int = 0
    status: str = RUNNING
    withheld: bool = False

    def ended(self, status: str) -> JobRecord:
        """Return the record of the job with its end."""
        return replace(self, status=status)


@dataclass(frozen=True)
class JobOptions:
    """How a job runs. Times are milliseconds; ``state_dir`` None keeps no state on disk; ``channel_capacity``
    counts elements per channel.

    ``savepoint``: where a job without checkpoints of its own starts from. ``ignore_unclaimed_state``: a
    changed query resumes with the state it can use and drops the rest. ``take_over``: fence off another
    process that has the job's state. ``record``: the job record, written into its directory. ``deployment``:
    where tasks run: "embedded", "processes" or "spark". The latter two run ``task_slots`` subtasks a worker,
    which may import functions from ``python_modules``. ``cluster``: how workers on other machines are
    reached. ``state_budget_bytes``: memory for the state of one slot, 0: no limit. State beyond it is spilled
    to ``spill_dir`` (None: the system's temporary files). ``unaligned``: barriers of periodic checkpoints
    overtake rows once they are older than ``aligned_timeout_ms``. ``exactly_once`` False: rows behind a
    barrier are not blocked, and may count twice after a failure. ``bounded_backend``: what computes bounded
    parts of the plan, "": the default of the process. ``keep_freed``: the allocator of a process that runs
    tasks keeps what they free.
    """

    name: str = "job"
    batch_max_rows: int = 262_144
    buffer_timeout_ms: int = 10
    latency_interval_ms: int = 0
    checkpoint_interval_ms: int = 0
    checkpoint_timeout_ms: int = 600_000
    checkpoint_min_pause_ms: int = 0
    state_dir: Location | None = None
    restart: RestartStrategy = field(default_factory=NoRestart)
    time_zone: str = "UTC"
    idle_timeout_ms: int = 30_000
    channel_capacity: int = 8
    retained_checkpoints: int = 2
    tolerable_failed_checkpoints: int = 10
    incremental_checkpoints: bool = True
    savepoint: Location | None = None
    ignore_unclaimed_state: bool = False
    restore_fallback: bool = False
    take_over: bool = False
    record: JobRecord | None = None
    deployment: str = "embedded"
    task_slots: int = 1
    heartbeat_timeout_ms: int = 5_000
    python_modules: tuple[str, ...] = ()
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    state_budget_bytes: int = 0
    spill_dir: Path | None = None
    exactly_once: bool = True
    unaligned: bool = False
    aligned_timeout_ms: int = 0
    bounded_backend: str = ""
    keep_freed: bool = False

    @classmethod
    def from_settings(
        cls, settings: SettingValues, *, name: str | None = None, state_dir: Location | None = None
    ) -> JobOptions:
        """Return the options of a session's settings; ``name`` and ``state_dir`` override them."""
        _check_barriers(settings)
        directory = state_dir if state_dir is not None else settings.get("execution.checkpointing.dir")
        return cls(
            name=name or settings.get("pipeline.name") or "job",
            batch_max_rows=settings.get("execution.batch.max-rows"),
            buffer_timeout_ms=settings.get("execution.buffer-timeout"),
            latency_interval_ms=settings.get("metrics.latency.interval"),
            checkpoint_interval_ms=settings.get("execution.checkpointing.interval") or 0,
            checkpoint_timeout_ms=settings.get("execution.checkpointing.timeout"),
            checkpoint_min_pause_ms=settings.get("execution.checkpointing.min-pause") or 0,
            state_dir=_location(directory),
            restart=_strategy(settings),
            retained_checkpoints=settings.get("execution.checkpointing.num-retained"),
            tolerable_failed_checkpoints=settings.get("execution.checkpointing.tolerable-failed-checkpoints"),
            incremental_checkpoints=settings.get("execution.checkpointing.incremental"),
            time_zone=settings.get("table.local-time-zone") or "UTC",
            savepoint=_location(settings.get("execution.state-recovery.path")),
            restore_fallback=settings.get("execution.state-recovery.fallback"),
            ignore_unclaimed_state=settings.get("execution.state-recovery.ignore-unclaimed-state"),
            state_budget_bytes=settings.get("state.memory.budget-per-slot"),
            spill_dir=Path(spill) if (spill := settings.get("state.spill.dir")) else None,
            idle_timeout_ms=settings.get("table.exec.source.idle-timeout") or 0,
            deployment=settings.get("deployment"),
            task_slots=settings.get("taskmanager.slots"),
            keep_freed=settings.get("taskmanager.memory.keep-freed"),
            heartbeat_timeout_ms=settings.get("heartbeat.timeout"),
            python_modules=tuple(
                name.strip() for name in str(settings.get("python.modules") or "").split(",") if name.strip()
            ),
            cluster=ClusterOptions.from_settings(settings),
            exactly_once=settings.get("execution.checkpointing.mode") == "EXACTLY_ONCE",
            unaligned=settings.get("execution.checkpointing.unaligned.enabled"),
            aligned_timeout_ms=settings.get("execution.checkpointing.aligned-checkpoint-timeout") or 0,
        )


def _location(given: Location | str | None) -> Location | None:
    """Return the place that a setting names, None when it is empty."""
    return parse_location(given) if isinstance(given, str) and given else given or None  # type: ignore[return-value]


def _check_barriers(settings: SettingValues) -> None:
    """Refuse barriers that would both overtake rows and not hold any up: SQL-1405."""
    if (
        settings.get("execution.checkpointing.unaligned.enabled")
        and settings.get("execution.checkpointing.mode") != "EXACTLY_ONCE"
    ):
        raise PenstockError(
            "SQL-1405",
            "unaligned checkpoints store rows in flight so that each counts once; "
            "'execution.checkpointing.mode' = 'AT_LEAST_ONCE' counts some twice",
            hint="RESET 'execution.checkpointing.unaligned.enabled', or RESET 'execution.checkpointing.mode'",
        )


def _strategy(settings: SettingValues) -> RestartStrategy:
    """Return the restart strategy the ``restart-strategy.*`` settings name."""
    kind = settings.get("restart-strategy.type")
    attempts, delay = settings.get("restart-strategy.attempts"), settings.get("restart-strategy.delay")
    # the same time between all restarts
    if kind == "fixed-delay":
        return FixedDelay(attempts=attempts, delay=delay)
    # longer each time
    if kind == "exponential-delay":
        return ExponentialDelay(
            attempts=attempts, delay=delay, max_delay=settings.get("restart-strategy.max-delay")
        )
    # restarts are refused once failures come too often
    if kind == "failure-rate":
        return FailureRate(
            attempts=settings.get("restart-strategy.failure-rate.max-failures-per-interval"),
            window_ms=settings.get("restart-strategy.failure-rate.failure-rate-interval"),
            delay=settings.get("restart-strategy.failure-rate.delay"),
        )
    # 'none', and no setting: the first failure ends the job
    return NoRestart()
