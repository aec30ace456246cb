"""One trial: a query run by hand on fed tables, held against DuckDB at its end and, where no row waits for
time, at every barrier.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.bounded.duckdb import leave_out_wrong_rewrites
from penstock.engine.changelog.row_kinds import UPDATE_AFTER, UPDATE_BEFORE, change_rows
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.aggregate import CountWindowAggregate, WindowAggregate
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.joins.interval_join import IntervalJoin
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from tests.generated.queries.generated.data import feeds
from tests.generated.queries.generated.pieces import Piece
from tests.harness.direct.feeds import Feed, Feeds
from tests.harness.direct.job import Changelog, DirectJob, Planned, planned

Rows = Counter[tuple[Any, ...]]
CUTS = (6, 14)


class Wrong(AssertionError):
    """An answer that is not the right one, in a few lines."""


class Arena:
    """Tables of one variant in a session and, per cut, in DuckDB. ``unanswered``: why DuckDB had no answer."""

    def __init__(self, tables: dict[str, Feed], **settings: str) -> None:
        self.tables = tables
        self.unanswered: Counter[str] = Counter()
        self.session = Session({"execution.runtime-mode": "streaming", **settings})
        Feeds(tables).register(self.session)
        self._databases: dict[int | None, duckdb.DuckDBPyConnection] = {}

    @classmethod
    def of(cls, variant: int, **settings: str) -> Arena:
        return cls(feeds(variant), **settings)

    def fed(self, batch_rows: int = 9) -> Feeds:
        return Feeds(self.tables, batch_rows=batch_rows)

    def expected(self, query: Piece | str, cut: int | None = None) -> Rows | None:
        """DuckDB's answer over the first ``cut`` changes of each split; None where it has no plan for the
        query.
        """
        rows = self.ordered(query, cut)
        return None if rows is None else plain(Counter(rows))

    def ordered(self, query: Piece | str, cut: int | None = None) -> list[tuple[Any, ...]] | None:
        """The rows of ``expected`` as DuckDB gives them."""
        if cut not in self._databases:
            connection = self._databases[cut] = duckdb.connect()
            connection.execute("SET threads = 1")
            leave_out_wrong_rewrites(connection)
            for name, feed in self.tables.items():
                connection.register("arrived", feed.table() if cut is None else feed.table(cut))
                connection.execute(f"CREATE TABLE {name} AS FROM arrived")
        try:
            text = query if isinstance(query, str) else query.text(theirs=True)
            return self._databases[cut].execute(text).fetchall()
        except (duckdb.NotImplementedException, duckdb.BinderException, duckdb.InternalException) as error:
            if (
                "orrelated" in str(error)
                or "not implemented" in str(error).lower()
                or "INTERNAL" in str(error)
            ):
                self.unanswered[str(error).splitlines()[0][:80]] += 1
                return None
            raise

    def close(self) -> None:
        self.session.close()
        for connection in self._databases.values():
            connection.close()


def plain(rows: Rows) -> Rows:
    """Rows with floating point numbers rounded to nine digits."""
    if not any(isinstance(value, float) for row in rows for value in row):
        return rows
    rounded: Rows = Counter()
    for row, count in rows.items():
        rounded[tuple(float(f"{value:.9g}") if isinstance(value, float) else value for value in row)] += count
    return rounded


def exact(rows: Rows) -> Rows:
    """Rows with a value said once: Python holds 1, True and 1.00 for equal, and NaN for unequal to itself."""
    said: Rows = Counter()
    for row, count in rows.items():
        said[tuple(_said(value) for value in row)] += count
    return said


def _said(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value + 0.0:.9g} as a double"  # -0.0 + 0.0 is 0.0: which zero stands for a group is nobody's promise
    if isinstance(value, Decimal | bool):
        return f"{value} as a {type(value).__name__}"
    return value


def compare(found: Rows, expected: Rows, where: str) -> None:
    found, expected = exact(found), exact(expected)
    if found != expected:
        missing, extra = expected - found, found - expected
        raise Wrong(f"{where}: missing {_few(missing)}; extra {_few(extra)}")


def compare_some(found: Rows, all_rows: Rows, query: str, where: str) -> None:
    """Rows under a LIMIT without an order are some of all rows, as many as it leaves."""
    ends = re.search(r"(?: LIMIT (?P<limit>\d+))?(?: OFFSET (?P<offset>\d+))?$", query)
    assert ends is not None
    limit, offset = (ends[word] and int(ends[word]) for word in ("limit", "offset"))
    left = max(all_rows.total() - (offset or 0), 0)
    wanted = left if limit is None else min(limit, left)
    if extra := exact(found) - exact(all_rows):
        raise Wrong(f"{where}: extra {_few(extra)}")
    if found.total() != wanted or min(found.values(), default=1) < 1:
        raise Wrong(f"{where}: {found.total()} rows where there should be {wanted}")


def _few(rows: Rows) -> str:
    return (
        ", ".join(f"{count} x {row}" for row, count in list(rows.items())[:2])
        + (f" and {len(rows) - 2} more" if len(rows) > 2 else "")
        or "none"
    )


def waits(plan: LogicalPlan) -> bool:
    """Whether some rows come out only when time has passed them, or so many others have come."""
    facts = PlanFacts()
    for node in plan.walk():
        if isinstance(
            node, WindowAggregate | CountWindowAggregate | TemporalJoin | MatchRecognize | Emit
        ) or (isinstance(node, Over) and facts.is_settled_by_time(node)):
            return True
        if isinstance(node, PartitionTop) and facts.insert_only(node):
            return True
        if isinstance(node, IntervalJoin) and node.kind not in (JoinKind.INNER, JoinKind.SEMI):
            return True
    return False


def check_changelog(changelog: Changelog, plan: Planned) -> None:
    """What the plan promised of its changes: nothing taken back, keys unique, a -U right before its +U of
    the same key.
    """
    for batch in changelog.batches:
        if plan.insert_only and batch.weights is not None and (batch.weights < 0).any():
            raise Wrong("rows were taken back by a plan that never does")
        if plan.upsert_key is None:
            continue
        rows, ops = change_rows(batch, plan.upsert_key)
        keys = (
            list(zip(*(map(_said, rows.column(i).to_pylist()) for i in plan.upsert_key), strict=True))
            or [()] * rows.num_rows
        )
        for i, op in enumerate(ops.tolist()):
            if (op == UPDATE_BEFORE and ops[i + 1] not in (UPDATE_BEFORE, UPDATE_AFTER)) or (
                op == UPDATE_AFTER and keys[i] != keys[i - 1]
            ):
                raise Wrong(f"-U and +U of {keys[i]} do not stand together")
    check_key(changelog.folded, plan)


def check_key(folded: Rows, plan: Planned) -> None:
    """The upsert key tells rows apart."""
    if plan.upsert_key is None:
        return
    keys = Counter(tuple(row[i] for i in plan.upsert_key) for row in folded.elements())
    twice = [key for key, count in keys.items() if count > 1]
    if twice:
        raise Wrong(f"key {plan.upsert_key} has two rows for {twice[0]}")


@dataclass(frozen=True)
class Manner:
    """How a query is run: subtasks, rows a batch, where barriers are, and at what parallelism it goes on
    from each (0: it just goes on).
    """

    parallelism: int = 1
    batch_rows: int = 9
    cuts: tuple[int, ...] = ()
    restores_at: int = 0

    @classmethod
    def of(cls, seed: int) -> Manner:
        """Every third query is looked at from barrier to barrier, every sixth goes on from them."""
        watched = seed % 3 == 0
        return cls(
            1 + seed // 3 % 2,
            (100, 9, 9, 3)[seed % 4],
            CUTS if watched else (),
            2 - seed % 4 // 2 if seed % 6 == 0 else 0,
        )

    @classmethod
    def soaked(cls, seed: int) -> Manner:
        """Of four queries two are stopped in the middle and restored at one to three slots, one of them with
        its rows one by one; one is looked at from barrier to barrier; one is left alone.
        """
        way, turn = seed % 4, seed // 4
        if way < 2:
            return cls(1 + turn // 3 % 3, 1 if way else 9, (6 if turn % 5 == 0 else 10,), 1 + turn % 3)
        return cls(2 - turn % 2, (9, 100, 3)[turn % 3], CUTS if way == 2 else ())

    @property
    def kind(self) -> str:
        """What sort of run it is, in words."""
        if self.restores_at:
            rows = "row by row" if self.batch_rows == 1 else "in batches"
            return f"restored in the middle, {rows}, at {self.parallelism} slots and then {self.restores_at}"
        return f"{'watched at barriers' if self.cuts else 'run through'}, at {self.parallelism} slots"


def check(arena: Arena, query: Piece, manner: Manner) -> bool:
    """Run a query and compare; False when DuckDB has no answer. Raises Wrong, or the error of a query we
    refuse.
    """
    expected = arena.expected(query)
    if expected is None:
        return False
    text = query.text()

    def held(found: Rows, wanted: Rows, where: str) -> None:
        return (
            compare_some(found, wanted, text, where)
            if query.sort == "some rows"
            else compare(found, wanted, where)
        )

    # as jobs that keep state are planned
    arena.session.settings.set("execution.checkpointing.dir", "/nonexistent" if manner.restores_at else "")
    plan = planned(arena.session, text, manner.parallelism)
    fed = arena.fed(manner.batch_rows)
    job = DirectJob(plan.graph, fed, batch_rows=manner.batch_rows)
    delayed = waits(plan.laid)
    for cut in manner.cuts:
        job.advance(cut)
        snapshot = job.barrier()
        check_key(job.changelog.folded, plan)
        if not delayed and (prefix := arena.expected(query, cut)) is not None:
            held(job.changelog.folded, prefix, f"after {cut} changes a split")
        if manner.restores_at:
            job.close()
            job = DirectJob(
                planned(arena.session, text, manner.restores_at).graph,
                fed,
                snapshot=snapshot,
                changelog=job.changelog,
                batch_rows=manner.batch_rows,
            )
    held(job.finish(), expected, "at the end")
    check_changelog(job.changelog, plan)
    return True


def outcome(arena: Arena, query: Piece, manner: Manner) -> str:
    """``same``, ``skipped``, or what is wrong in a line: the error or the difference."""
    try:
        return "same" if check(arena, query, manner) else "skipped"
    except PenstockError as error:
        return f"{error.code} {error.message}" + (
            f" ({error.__cause__!r})" if error.code == "RUN-2900" else ""
        )
    except (
        Wrong,
        AssertionError,
        KeyError,
        IndexError,
        ValueError,
        TypeError,
        AttributeError,
        duckdb.Error,
    ) as error:
        return f"{type(error).__name__} {error}"
