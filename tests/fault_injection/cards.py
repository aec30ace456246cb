"""The cards: one line each. A card's module has ``add_arguments(parser)`` and ``run(arguments, verdict)``,
which fills the verdict.

``arguments`` holds at least ``seed`` (int) and ``directory`` (an empty Path of the run's own). ``soak``: the
words of its long run.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """One experiment: ``python -m tests.fault_injection <name>``."""

    name: str
    module: str
    sentence: str
    soak: tuple[str, ...] = ()


CARDS: tuple[Card, ...] = (
    Card(
        "ends",
        "tests.fault_injection.ends",
        "programs that end at any moment: no abort, no row lost in silence, stopped jobs are named",
        ("--count", "500"),
    ),
    Card(
        "server",
        "tests.fault_injection.server_kills",
        "a server of five jobs is killed: all go on, each row once",
        ("--kills", "50"),
    ),
    Card(
        "attacks",
        "tests.fault_injection.attacks",
        "strangers and small roles against every port of a server: nothing told, nothing exceeded, it goes on",
        ("--messages", "100000", "--slow", "300"),
    ),
    Card(
        "backpressure",
        "tests.fault_injection.backpressure",
        "a sink at a hundredth of the source's speed: queues stay in bounds, memory flat",
        ("--minutes", "10"),
    ),
    Card(
        "bit-rot",
        "tests.fault_injection.bit_rot",
        "damaged checkpoints are told before use: flips, cuts, swaps, splices",
        ("--flips", "2000", "--cuts", "200"),
    ),
    Card(
        "sim",
        "tests.fault_injection.sim",
        "seeded simulation of coordinators, workers, connections and storage, each seed twice",
        ("--minutes", "120"),
    ),
    Card(
        "lakehouse",
        "tests.fault_injection.lakehouse",
        "lakehouse tables: killed at each step of the sink, a stranger writes beside it: every row once",
        ("--rows", "60000", "--rate", "500", "--kills", "50"),
    ),
    Card(
        "memory",
        "tests.fault_injection.memory",
        "a join of many keys under a memory budget spills, or fails by name",
        ("--rows", "10000000", "--width", "40", "--budget", "256", "--beside", "512"),
    ),
    Card(
        "outsized",
        "tests.fault_injection.outsized",
        "hot keys, 2.4 GB of text, types and plans without end: an answer in bounded memory, or a sentence",
    ),
    Card(
        "unaligned",
        "tests.fault_injection.slow_sink",
        "checkpoints behind a slow sink: unaligned ones are done at once, and restore exactly at another parallelism",
    ),
    Card(
        "failpoints",
        "tests.fault_injection.failpoints",
        "killed, failed and delayed at each of the 39 steps of the protocol that a job with files takes",
    ),
    Card(
        "rescale",
        "tests.fault_injection.rescaled",
        "jobs go on at another parallelism from checkpoints of all kinds: every pair of choices",
        ("--full",),
    ),
    Card(
        "object-storage",
        "tests.fault_injection.object_storage",
        "state and table in a bucket: killed, refused and superseded, each row is there once",
        ("--kills", "50", "--rows", "600000", "--deployment", "processes"),
    ),
    Card(
        "shared-table",
        "tests.fault_injection.shared_table",
        "jobs of one name write to one table at once and are killed: each one's rows are there once",
        ("--seeds", "400", "--jobs", "4", "--kills", "12", "--rows", "20000"),
    ),
    Card(
        "ledger",
        "tests.fault_injection.ledger",
        "balances that are committed sum to zero in every read while the job is killed",
    ),
    Card(
        "recovery",
        "tests.fault_injection.recovery",
        "how long a job is out after a kill, and what takes how long",
    ),
    Card(
        "alerts",
        "tests.fault_injection.alerts",
        "an automaton's alerts are exact while the job is killed",
        ("--error-rate", "0.0001"),
    ),
    Card(
        "hosted",
        "tests.fault_injection.hosted",
        "a window count on workers of Spark: killed, stopped, rescaled, restarted; every row counts once, nothing is left",
        ("--rows", "6000000", "--rounds", "5"),
    ),
    Card(
        "unshared",
        "tests.fault_injection.unshared",
        "a worker of Spark that sees no file of the driver: tables it does not read itself give the same rows",
    ),
    Card(
        "postgres-cdc",
        "tests.fault_injection.postgres_cdc",
        "a PostgreSQL table is followed while its writers work, the job is killed and the server restarts",
        ("--rows", "60000", "--kills", "50", "--restarts", "8"),
    ),
    Card(
        "postgres-sink",
        "tests.fault_injection.postgres_sink",
        "into PostgreSQL, killed at each step of a commit, the server restarted and killed too: no row lost, none doubled",
        ("--rows", "60000", "--rate", "1000", "--kills", "50"),
    ),
    Card(
        "two-phase",
        "tests.fault_injection.two_phase",
        "killed at each step of a sink into files or a database, at parallelism 3, 1 and 5: no row lost, none doubled",
        ("--rows", "100000", "--checkpoints", "500"),
    ),
    Card(
        "nats",
        "tests.fault_injection.nats",
        "from a stream of JetStream to another, killed at each step of a commit, the server too, at parallelism 3, 1 and 2: no row lost, none doubled",
        ("--rows", "60000", "--rate", "600", "--kills", "50"),
    ),
    Card(
        "kafka",
        "tests.fault_injection.kafka",
        "from a topic to topics, killed at each step of a transaction, the broker and workers too, woken behind its successor: no row lost, none doubled",
        ("--rows", "60000", "--rate", "150", "--kills", "50"),
    ),
)
