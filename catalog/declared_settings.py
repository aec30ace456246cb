"""The one declared table of session settings: keys, kinds, defaults and bounds."""

from __future__ import annotations

from enum import StrEnum

from penstock.catalog.frozen_dataclass import dataclass


class SettingKind(StrEnum):
    """How the text of a setting is read."""

    BOOL = "bool"
    INT = "int"
    DURATION = "duration"
    STRING = "string"
    ENUM = "enum"
    MEMORY = "memory"


@dataclass(frozen=True)
class Setting:
    """One declared setting. ``default`` is text, read like the user's; ``least`` and ``most`` bound an
    INT.
    """

    key: str
    kind: SettingKind
    default: str
    help: str
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None


def _declare(*rows: Setting) -> dict[str, Setting]:
    return {row.key: row for row in rows}


# Keys are Flink's wherever Flink has the setting. The order is that of SET without a key.
SETTINGS: dict[str, Setting] = _declare(
    # Jobs: who runs them, how wide, under which name.
    Setting(
        "execution.runtime-mode",
        SettingKind.ENUM,
        "automatic",
        "who runs a plan",
        ("automatic", "streaming", "batch"),
    ),
    Setting("parallelism.default", SettingKind.INT, "1", "subtasks of each operator", least=1, most=1024),
    # State moves between subtasks by key groups: their number cannot change with a restore.
    Setting(
        "pipeline.max-parallelism",
        SettingKind.INT,
        "128",
        "number of key groups; fixed for the life of a job's state",
        least=1,
        most=32768,
    ),
    Setting("pipeline.name", SettingKind.STRING, "", "name of the next job"),
    # Checkpoints and savepoints.
    Setting(
        "execution.checkpointing.interval", SettingKind.DURATION, "0", "time between checkpoints; 0 is off"
    ),
    Setting(
        "execution.checkpointing.timeout",
        SettingKind.DURATION,
        "10 min",
        "a checkpoint that takes longer is aborted",
    ),
    Setting(
        "execution.checkpointing.min-pause",
        SettingKind.DURATION,
        "0",
        "least time between the end of a checkpoint and the next",
    ),
    Setting(
        "execution.checkpointing.incremental",
        SettingKind.BOOL,
        "true",
        "a checkpoint writes what changed since the last one, not all state",
    ),
    # Two at least: an intact one is left when the newest is damaged (state-recovery.fallback).
    Setting(
        "execution.checkpointing.num-retained",
        SettingKind.INT,
        "2",
        "completed checkpoints that are kept",
        least=2,
        most=1000,
    ),
    Setting(
        "execution.checkpointing.tolerable-failed-checkpoints",
        SettingKind.INT,
        "10",
        "failures in a row that a job tolerates",
        least=0,
        most=1_000_000,
    ),
    Setting(
        "execution.checkpointing.dir",
        SettingKind.STRING,
        "",
        "directory or URL of checkpoints; empty keeps them for the process's life only",
    ),
    Setting(
        "execution.checkpointing.savepoint-dir",
        SettingKind.STRING,
        "",
        "where savepoints without a path are written",
    ),
    Setting(
        "execution.state-recovery.path",
        SettingKind.STRING,
        "",
        "savepoint that jobs without checkpoints of their own start from",
    ),
    Setting(
        "execution.state-recovery.fallback",
        SettingKind.BOOL,
        "false",
        "a job whose checkpoint is damaged restores the newest intact one",
    ),
    Setting(
        "execution.state-recovery.ignore-unclaimed-state",
        SettingKind.BOOL,
        "false",
        "a job whose query has changed restores the state of unchanged operators, and drops the rest",
    ),
    Setting(
        "execution.checkpointing.mode",
        SettingKind.ENUM,
        "EXACTLY_ONCE",
        "how often a row counts after a failure",
        ("EXACTLY_ONCE", "AT_LEAST_ONCE"),
    ),
    Setting(
        "execution.checkpointing.unaligned.enabled",
        SettingKind.BOOL,
        "false",
        "barriers overtake rows, which the checkpoint then contains",
    ),
    Setting(
        "execution.checkpointing.aligned-checkpoint-timeout",
        SettingKind.DURATION,
        "0",
        "how long a barrier waits its turn before it overtakes",
    ),
    # Batches: how many rows travel together.
    Setting(
        "execution.buffer-timeout",
        SettingKind.DURATION,
        "10 ms",
        "longest wait to fill a batch; 0 ships at once",
    ),
    Setting(
        "execution.batch.max-rows",
        SettingKind.INT,
        "262144",
        "most rows in a batch",
        least=1,
        most=10_000_000,
    ),
    # State: how long it is kept, how much is in memory.
    Setting(
        "table.exec.state.ttl",
        SettingKind.DURATION,
        "0",
        "state of joins, groups and partitions is dropped when not written for so long; 0 is never",
    ),
    Setting(
        "state.memory.budget-per-slot",
        SettingKind.MEMORY,
        "0",
        "memory for state of one slot; more goes to disk; 0 is no limit",
    ),
    Setting(
        "state.spill.dir",
        SettingKind.STRING,
        "",
        "where state goes that is over its memory; empty: the system's directory for temporary files",
    ),
    # A row falls into 86,400,000 windows of a day that slide by a millisecond.
    Setting(
        "table.exec.window.max-per-row",
        SettingKind.INT,
        "100000",
        "windows of HOP or CUMULATE that one row may fall into",
        least=1,
    ),
    # Limits and meaning of statements.
    # A view that reads a view twice doubles at each level: 30 levels would be 2**30 nodes.
    Setting(
        "table.optimizer.max-plan-nodes",
        SettingKind.INT,
        "5000",
        "nodes of a plan when its views and names are opened",
        least=10,
    ),
    # DuckDB has no bound and Spark 100: a row that leads to itself would go on for ever.
    Setting(
        "recursion.max-iterations",
        SettingKind.INT,
        "10000",
        "most iterations of a WITH RECURSIVE; more end the query",
        least=1,
    ),
    # Flink's default is 0: there one silent split holds up all windows.
    Setting(
        "table.exec.source.idle-timeout",
        SettingKind.DURATION,
        "30 s",
        "a split silent so long stops holding back the watermark; 0 is never",
    ),
    Setting(
        "table.local-time-zone", SettingKind.STRING, "UTC", "zone in which TIMESTAMP_LTZ is shown and read"
    ),
    Setting(
        "sql.string-escapes",
        SettingKind.ENUM,
        "none",
        "what a backslash in a string is: itself (none), or an escape as in Spark (backslash), from the next"
        " text that is executed",
        ("none", "backslash"),
    ),
    Setting(
        "table.dml-sync",
        SettingKind.ENUM,
        "automatic",
        "INSERT waits for its job to end: always, never, or (automatic) where every source ends",
        ("automatic", "true", "false"),
    ),
    # Restarts: a fixed number with growing delay; the failure rate is below.
    Setting(
        "restart-strategy.type",
        SettingKind.ENUM,
        "exponential-delay",
        "what follows a failure",
        ("none", "fixed-delay", "exponential-delay", "failure-rate"),
    ),
    Setting("restart-strategy.attempts", SettingKind.INT, "10", "restarts before a job fails for good"),
    Setting("restart-strategy.delay", SettingKind.DURATION, "1 s", "wait before the first restart"),
    Setting("restart-strategy.max-delay", SettingKind.DURATION, "1 min", "longest wait before a restart"),
    # Metrics.
    Setting(
        "metrics.latency.interval",
        SettingKind.DURATION,
        "0",
        "time between the latency markers of each source; 0 is off",
    ),
    Setting(
        "metrics.prometheus.port",
        SettingKind.INT,
        "0",
        "port on 127.0.0.1 where /metrics answers; 0 is off",
        most=65535,
    ),
    # The restart strategy failure-rate.
    Setting(
        "restart-strategy.failure-rate.max-failures-per-interval",
        SettingKind.INT,
        "1",
        "failures within the interval before a job fails for good",
    ),
    Setting(
        "restart-strategy.failure-rate.failure-rate-interval",
        SettingKind.DURATION,
        "1 min",
        "the interval failures are counted in",
    ),
    Setting("restart-strategy.failure-rate.delay", SettingKind.DURATION, "1 s", "wait before each restart"),
    # Workers: processes or Spark executors, their slots, ports and heartbeats.
    Setting(
        "deployment",
        SettingKind.ENUM,
        "embedded",
        "where tasks run: in this process, in worker processes of it, or in tasks of Spark",
        ("embedded", "processes", "spark"),
    ),
    Setting(
        "taskmanager.slots",
        SettingKind.INT,
        "1",
        "subtasks of each operator that one worker process runs",
        least=1,
        most=128,
    ),
    Setting("taskmanager.memory.keep-freed", SettingKind.BOOL, "true", "glibc keeps what batches free"),
    # At least a second (1,000 ms): a short pause of a process must not count as its loss.
    Setting(
        "heartbeat.timeout",
        SettingKind.DURATION,
        "5 s",
        "a worker process silent so long is lost: killed and replaced",
        least=1_000,
    ),
    Setting(
        "taskmanager.registration-timeout",
        SettingKind.DURATION,
        "5 min",
        "how long Spark may take to give a worker its cores",
    ),
    Setting(
        "taskmanager.idle-timeout",
        SettingKind.DURATION,
        "0",
        "how long a worker on Spark that has no job keeps its cores",
    ),
    Setting(
        "taskmanager.port-range",
        SettingKind.STRING,
        "0",
        "ports on which workers on Spark listen for one another, such as 50100-50199",
    ),
    Setting(
        "jobmanager.host",
        SettingKind.STRING,
        "",
        "where workers on Spark find this process; empty: where it listens",
    ),
    Setting(
        "jobmanager.bind-host",
        SettingKind.STRING,
        "127.0.0.1",
        "the address this process listens on for workers on Spark",
    ),
    Setting(
        "jobmanager.port",
        SettingKind.INT,
        "0",
        "the port this process listens on for workers on Spark; 0: any",
        most=65535,
    ),
    # TLS between workers.
    # On unless set: rows between machines are never sent in the clear by default.
    Setting(
        "security.ssl.internal.required",
        SettingKind.BOOL,
        "true",
        "rows leave a machine encrypted or not at all",
    ),
    Setting(
        "security.ssl.internal.certificate",
        SettingKind.STRING,
        "",
        "PEM file: the certificate of this process and its workers on Spark",
    ),
    Setting(
        "security.ssl.internal.key", SettingKind.STRING, "", "PEM file: the private key of that certificate"
    ),
    Setting(
        "security.ssl.internal.ca", SettingKind.STRING, "", "PEM file: who has signed the certificates of all"
    ),
    # Bounded backends; Spark's rows come back over an own port.
    Setting(
        "bounded.backend", SettingKind.ENUM, "auto", "who runs bounded plans", ("auto", "spark", "duckdb")
    ),
    Setting(
        "bounded.auto.local-size", SettingKind.MEMORY, "64 mb", "DuckDB gets smaller local inputs; 0: never"
    ),
    Setting(
        "spark.keep-alive",
        SettingKind.DURATION,
        "0",
        "how long a Spark of this machine outlives the last process that uses it; 0 ends it with its process",
    ),
    Setting(
        "spark.results.host",
        SettingKind.STRING,
        "",
        "address at which Spark's tasks reach this process; empty: Spark's driver's",
    ),
    Setting(
        "spark.results.bind",
        SettingKind.STRING,
        "",
        "address that receives rows of Spark; empty: any that fits the host",
    ),
    Setting(
        "spark.results.port", SettingKind.INT, "0", "port that receives rows of Spark; 0 is any", most=65535
    ),
    # Clients and Python.
    Setting(
        "result-mode", SettingKind.ENUM, "table", "how a changing result is shown", ("table", "changelog")
    ),
    Setting(
        "result-status-interval", SettingKind.DURATION, "3 s", "silence before a query's status; 0 is never"
    ),
    # Empty: a stored catalog runs nobody's code until its user allows a module.
    Setting(
        "python.modules",
        SettingKind.STRING,
        "",
        "Python modules a stored catalog's functions may come from, separated by commas",
    ),
    # The optimizer.
    Setting(
        "optimizer.disabled-rules",
        SettingKind.STRING,
        "",
        "names of optimizer rules to skip, separated by commas",
    ),
    Setting(
        "optimizer.runtime-filters",
        SettingKind.BOOL,
        "true",
        "the keys of a join's bounded side prune the scan of the other",
    ),
    Setting(
        "optimizer.split-aggregates",
        SettingKind.BOOL,
        "true",
        "aggregate before an exchange and again after it",
    ),
)

# 5 s, 1.5h, 64 mb. A duration without a unit is in milliseconds; an option of a connector needs one.
