"""A job from a topic to two topics, one appended to and one of upserts, and a stock reader of committed
records that looks on.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.harness.kafka_broker import KafkaTopics

JOB = "copy-1"
KEYS = 10
# group 0 enters the result and leaves it again: its key is deleted
SCRIPT = """
SET 'pipeline.name' = 'copy';
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', {broker},
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'{pace});
CREATE TABLE appended (n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{appended}', {broker});
CREATE TABLE counted (k BIGINT, total BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '{counted}', 'key.format' = 'json', {broker});
EXECUTE STATEMENT SET BEGIN
INSERT INTO appended SELECT n FROM numbers;
INSERT INTO counted SELECT n % {keys}, COUNT(*) FROM numbers GROUP BY n % {keys} HAVING n % {keys} > 0 OR COUNT(*) < 5;
END;
"""


class CopiedTopics:
    """The topics of the job, which reaches the broker at ``bootstrap``. ``wrong`` collects what the reader has
    found.
    """

    def __init__(self, topics: KafkaTopics, rows: int, partitions: int = 3, bootstrap: str = "") -> None:
        self._topics, self._rows = topics, rows
        self._bootstrap = bootstrap or topics.bootstrap
        self.source = topics.create(partitions=partitions)
        self.appended, self.counted = topics.create(partitions=2), topics.create(partitions=2)
        values = [(None, b'{"n":%d}' % n) for n in range(rows)]
        for partition in range(partitions):
            topics.produce(self.source, values[partition::partitions], partition)
        self.wrong: list[str] = []
        self._seen: set[int] = set()

    def script(self, rate: int = 0) -> str:
        """Return the job's statements; ``rate``: rows a second, 0 for no limit."""
        broker = f"'properties.bootstrap.servers' = '{self._bootstrap}', 'format' = 'json'"
        return SCRIPT.format(
            source=self.source,
            appended=self.appended,
            counted=self.counted,
            broker=broker,
            keys=KEYS,
            pace=f", 'scan.rows-per-second' = '{rate}'" if rate else "",
        )

    def committed(self) -> Counter[int]:
        """Return how often each number is committed."""
        return Counter(json.loads(m.value())["n"] for m in self._topics.read(self.appended))

    def read(self) -> int:
        """Read what is committed: no number is there twice, none that was seen is gone. Return how many."""
        found = self.committed()
        doubled = sum(1 for count in found.values() if count > 1)
        if doubled:
            self.wrong.append(f"{doubled} numbers are there twice")
        if self._seen - found.keys():
            self.wrong.append(f"{len(self._seen - found.keys())} numbers are gone")
        self._seen = set(found)
        return len(found)

    def check_all(self) -> None:
        """Check the end: every number is there once, and the last record of each key is its count."""
        there = self.read()
        if self._seen != set(range(self._rows)):
            self.wrong.append(f"{self._rows - there} of {self._rows} numbers are lost")
        totals: dict[int, int] = {}
        deleted = 0
        for message in self._topics.read(self.counted):
            key = json.loads(message.key())["k"]
            if message.value() is None:
                deleted += 1
                totals.pop(key, None)
            else:
                totals[key] = json.loads(message.value())["total"]
        expected = {key: len(range(key, self._rows, KEYS)) for key in range(1, KEYS)}
        if totals != expected:
            self.wrong.append(f"counts are {totals}, not {expected}")


def marked(root: Path) -> set[str]:
    """Return the points at which processes have died."""
    return {path.name.rpartition("-")[0] for path in (root / "marks").glob("*")}
