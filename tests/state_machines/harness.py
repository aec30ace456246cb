"""A machine of hypothesis around one operator: rows given and taken back, time, barriers, restores at other
parallelisms, the end, in any order.

The operator runs in the smallest job that has it, driven by hand; after every look at it the folded output is
the naive reference's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from penstock.engine.storage.spill_files import SpillFiles
from tests.generated.queries.generated.trial import Arena, plain
from tests.harness.direct.feeds import Feed, Feeds, Row
from tests.harness.direct.job import DirectJob, planned

START = datetime(2024, 1, 1)
LONG_AGO, FOR_EVER = datetime(1, 1, 1), datetime(9999, 1, 1)
DELAY_S = 4
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("k", pa.int32()),
        ("v", pa.int64()),
        ("ts", pa.timestamp("us")),
    ]
)
ID, K, V, TS = range(4)
Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Entry:
    """A change as it was given: ``behind`` is how far its split's watermark had come."""

    row: Row
    weight: int
    behind: datetime


@dataclass
class Given:
    """What a job was given so far: the changes of each table, and how far time has come in all of it."""

    tables: dict[str, list[Entry]]
    now: datetime = LONG_AGO

    def rows(self, table: str = "a") -> list[Row]:
        """The rows of a table, each as often as it is there."""
        total: Counter[Row] = Counter()
        for entry in self.tables[table]:
            total[entry.row] += entry.weight
        return list(total.elements())

    def timely(self, table: str = "a") -> list[Row]:
        """The rows that were not behind their split, of a table without retractions."""
        return [
            entry.row
            for entry in self.tables[table]
            if entry.row[TS] is not None and entry.row[TS] >= entry.behind
        ]


@dataclass(frozen=True)
class Subject:
    """One operator under test: the query that has it, whether its tables have time, late rows and
    retractions, and the reference.
    """

    query: str
    reference: Callable[[Given], Rows]
    timed: bool = False
    retracts: bool = True
    has: str = ""
    tables: tuple[str, ...] = field(default=("a",))
    lates: bool = True


class OperatorMachine(RuleBasedStateMachine):
    """Rules over one subject; a subclass names it."""

    subject: Subject
    operators: set[str]
    files: SpillFiles | None = None
    arenas: ClassVar[dict[tuple[bool, bool, tuple[str, ...]], Arena]] = {}

    def __init__(self) -> None:
        super().__init__()
        subject = self.subject
        self.changes: dict[str, list[list[tuple[Row, int]]]] = {name: [[], []] for name in subject.tables}
        self.given = Given({name: [] for name in subject.tables})
        self.tops: dict[tuple[str, int], datetime] = {
            (name, split): LONG_AGO for name in subject.tables for split in (0, 1)
        }
        self.clock = 0
        self.number = 0
        self.job: DirectJob | None = None

    @initialize(parallelism=st.sampled_from([1, 2]), batch=st.sampled_from([1, 3, 50]), lasting=st.booleans())
    def begin(self, parallelism: int, batch: int, lasting: bool) -> None:
        self.batch = batch
        arena = self._arena()
        self.lasting = lasting
        self.feeds = Feeds({name: self._feed(name) for name in self.subject.tables}, batch_rows=batch)
        self.job = self._deployed(arena, parallelism)

    def _feed(self, name: str) -> Feed:
        return Feed(
            SCHEMA, tuple(self.changes[name]), time_column="ts" if self.subject.timed else None, delay=DELAY_S
        )  # type: ignore[arg-type]

    def _arena(self) -> Arena:
        """A session that knows the tables; that some take rows back shows in a change of theirs."""
        subject = self.subject
        key = (subject.timed, subject.retracts, subject.tables)
        if key not in self.arenas:
            splits = (((((0, 1, 1, START)), -1),),) if subject.retracts else ((),)
            tables = {
                name: Feed(SCHEMA, splits, "ts" if subject.timed else None, DELAY_S)
                for name in subject.tables
            }  # type: ignore[arg-type]
            self.arenas[key] = Arena(tables)
        return self.arenas[key]

    def _deployed(self, arena: Arena, parallelism: int, **rest: Any) -> DirectJob:
        arena.session.settings.set(
            "execution.checkpointing.dir", "/nonexistent" if self.lasting or rest else ""
        )
        self.lasting = self.lasting or bool(rest)
        plan = planned(arena.session, self.subject.query, parallelism)
        job = DirectJob(plan.graph, self.feeds, batch_rows=self.batch, files=self.files, **rest)
        self.operators.update(
            type(chained.operator).__name__ for task in job._tasks for chained in task.chain.operators
        )
        return job

    # rules

    @rule(
        table=st.integers(0, 1),
        split=st.integers(0, 1),
        k=st.sampled_from([None, 1, 2, 3]),
        v=st.sampled_from([None, 0, 1, 2, 5]),
        ahead=st.integers(-3, 6),
        copies=st.sampled_from([1, 1, 1, 2]),
    )
    def insert(self, table: int, split: int, k: int | None, v: int | None, ahead: int, copies: int) -> None:
        name = self.subject.tables[table % len(self.subject.tables)]
        self.number += 1
        time = START + timedelta(seconds=self.clock + ahead, microseconds=self.number)
        if not self.subject.lates:
            time = max(time, self._behind(name, split) + timedelta(seconds=1, microseconds=self.number))
        row = (self.number, k, v, time)
        self._give(name, split, row, copies if self.subject.retracts and not self.subject.timed else 1)

    @rule(seconds=st.integers(1, 9))
    def go_on(self, seconds: int) -> None:
        self.clock += seconds

    @precondition(lambda self: self.subject.timed and self.subject.lates and self.number)
    @rule(
        table=st.integers(0, 1),
        split=st.integers(0, 1),
        k=st.sampled_from([None, 1, 2]),
        back=st.integers(5, 40),
    )
    def late(self, table: int, split: int, k: int | None, back: int) -> None:
        name = self.subject.tables[table % len(self.subject.tables)]
        self.number += 1
        self._give(
            name,
            split,
            (self.number, k, 7, START + timedelta(seconds=self.clock - back, microseconds=self.number)),
            1,
        )

    @precondition(lambda self: self.subject.retracts)
    @rule(table=st.integers(0, 1), place=st.integers(0, 50))
    def retract(self, table: int, place: int) -> None:
        name = self.subject.tables[table % len(self.subject.tables)]
        live = [
            (split, row)
            for split in (0, 1)
            for row in self._live(name, split)
            if not self.subject.timed or row[TS] >= self._behind(name, split)
        ]
        if live:
            split, row = live[place % len(live)]
            self._give(name, split, row, -1)

    def _live(self, name: str, split: int) -> list[Row]:
        total: Counter[Row] = Counter()
        for row, weight in self.changes[name][split]:
            total[row] += weight
        return list(total.elements())

    def _behind(self, name: str, split: int) -> datetime:
        top = self.tops[name, split]
        return top if top == LONG_AGO else top - timedelta(seconds=DELAY_S)

    def _give(self, name: str, split: int, row: Row, weight: int) -> None:
        self.changes[name][split].append((row, weight))
        self.given.tables[name].append(Entry(row, weight, self._behind(name, split)))
        self.tops[name, split] = max(self.tops[name, split], row[TS])

    @rule()
    def look(self) -> None:
        """Let all that was given be worked on, and compare at a barrier."""
        assert self.job is not None
        self.job.advance(1 << 50)
        self.job.barrier()
        self._compare()

    @rule(parallelism=st.sampled_from([1, 2, 3]))
    def restore(self, parallelism: int) -> None:
        """Snapshot, and go on with the key groups of as many subtasks."""
        assert self.job is not None
        if not self.lasting:
            return
        self.job.advance(1 << 50)
        snapshot = self.job.barrier()
        self._compare()
        self.job.close()
        self.job = self._deployed(self._arena(), parallelism, snapshot=snapshot, changelog=self.job.changelog)

    def _compare(self) -> None:
        assert self.job is not None
        self.given.now = min((self._behind(name, split) for name, split in self.tops), default=LONG_AGO)
        self._same()

    def _same(self) -> None:
        assert self.job is not None
        expected, found = plain(+self.subject.reference(self.given)), plain(self.job.changelog.folded)
        assert found == expected, (
            f"missing {dict(expected - found)}, extra {dict(found - expected)}, at {self.given.now}"
        )

    def teardown(self) -> None:
        """The end of input: time goes on for ever."""
        if self.job is None:
            return
        self.job.finish()
        self.given.now = FOR_EVER
        self._same()
