"""The events of entities that follow an automaton, and what an alert is: Flink's StateMachineExample, as
files and as pairs of events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

EVENTS = "abcdeg"
A, B, C, D, E, G = range(6)
LEGAL = ("ga", "gc", "ab", "cb", "cd", "be", "eg", "dg")  # what may follow what; an entity begins as after g
FILES = 4

Alert = tuple[int, int]


@dataclass(frozen=True)
class Events:
    """The entity, number within the entity (from 1) and kind of every event, in the order of time."""

    entity: np.ndarray
    number: np.ndarray
    kind: np.ndarray


def make_events(rows: int, keys: int, seed: int, error_rate: float = 0.0) -> Events:
    """Draw events: each of a random entity, of the kind its automaton takes next; some replaced by any
    other kind.
    """
    random = np.random.default_rng(seed)
    entity = random.integers(0, keys, rows)
    order = np.argsort(entity, kind="stable")
    counts = np.bincount(entity, minlength=keys)
    begins = np.concatenate(([0], np.cumsum(counts)[:-1]))
    number = np.empty(rows, np.int64)
    number[order] = np.arange(rows) - np.repeat(begins, counts) + 1
    paths = np.empty((int(counts.max()), keys), np.int8)
    at = np.full(keys, G, np.int8)
    for step in range(len(paths)):
        drawn = random.random(keys)
        after = np.array([B, E, B, G, G, A], np.int8)[at]
        after = np.where((at == G) & (drawn >= 0.6), C, after)
        after = np.where((at == C) & (drawn >= 0.2), D, after)
        paths[step] = at = after.astype(np.int8)
    kind = paths[number - 1, entity]
    wrong = random.random(rows) < error_rate
    kind[wrong] = (kind[wrong] + random.integers(1, 6, int(wrong.sum()))) % 6
    return Events(entity, number, kind)


def write_events(events: Events, directory: Path, rate: int) -> None:
    """Write the events to files in turn, a microsecond grid apart that makes ``rate`` of them a second."""
    directory.mkdir(parents=True)
    rows = len(events.entity)
    times = 1_600_000_000_000_000 + np.arange(rows) * max(1, 1_000_000 // rate)
    kinds = pa.DictionaryArray.from_arrays(pa.array(events.kind), pa.array(list(EVENTS))).cast(pa.string())
    table = pa.table(
        {
            "entity": events.entity,
            "n": events.number,
            "event": kinds,
            "ts": pa.array(times).cast(pa.timestamp("us")),
        }
    )
    for file in range(FILES):
        pq.write_table(
            table.take(pa.array(np.arange(file, rows, FILES))),
            directory / f"part-{file}.parquet",
            row_group_size=16_384,
        )


def expected_alerts(events: Events) -> Counter[Alert]:
    """Return the alerts a single-threaded reading of the log raises: events that may not follow the one
    before of their entity.
    """
    legal = np.zeros((6, 6), bool)
    for before, after in LEGAL:
        legal[EVENTS.index(before), EVENTS.index(after)] = True
    order = np.lexsort((events.number, events.entity))
    kind, first = events.kind[order], events.number[order] == 1
    before = np.where(first, G, np.concatenate(([G], kind[:-1])))
    wrong = order[~legal[before, kind]]
    return Counter(zip(events.entity[wrong].tolist(), events.number[wrong].tolist(), strict=True))


TABLES = """
CREATE TABLE events (entity BIGINT, n BIGINT, event STRING, ts TIMESTAMP(6), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{root}/events', 'format' = 'parquet', 'source.replay' = 'true', 'source.rows-per-second' = '{rate}');
CREATE TABLE alerts (entity BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{root}/alerts', 'format' = 'json');
CREATE TABLE counted (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{root}/counted', 'format' = 'json');
"""
LAG = """
SELECT entity, n FROM (
  SELECT entity, n, event, LAG(event) OVER w AS event_before, LAG(n) OVER w AS n_before FROM events WINDOW w AS (PARTITION BY entity ORDER BY ts))
WHERE COALESCE(event_before, 'g') || event NOT IN ({legal}) OR n <> COALESCE(n_before, 0) + 1
"""
MATCH = """
SELECT entity, n FROM events MATCH_RECOGNIZE (
  PARTITION BY entity ORDER BY ts MEASURES B.n AS n ONE ROW PER MATCH AFTER MATCH SKIP TO LAST B PATTERN (A B)
  DEFINE B AS PREV(B.event) || B.event NOT IN ({legal}) OR B.n <> PREV(B.n) + 1)
"""
VARIANTS = {"lag": LAG, "match": MATCH}


def script(root: Path, variant: str, rate: int) -> str:
    """Return the job: alerts by one of the two queries, and beside them how many events there were, by the
    second.
    """
    query = VARIANTS[variant].format(legal=", ".join(f"'{pair}'" for pair in LEGAL))
    counted = "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY window_start, window_end"
    tables = TABLES.format(root=root, rate=rate)
    return f"{tables}EXECUTE STATEMENT SET BEGIN INSERT INTO alerts {query}; INSERT INTO counted {counted}; END;\n"
