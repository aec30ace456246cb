"""The lookup join in the logical plan: each row is joined with the rows that a table returns for its key as
it passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from penstock.catalog.connectors.registry import lookup_option, reload_ms
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema, without_event_time
from penstock.planner.expressions.nodes import Expression, columns_read
from penstock.planner.logical.distribution import Partitioning
from penstock.planner.logical.joins.join import JoinKind, mark_side
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import duration_text, expression_text, join_condition_text
from penstock.planner.logical.plan import (
    NO_KEYS,
    ColumnPruner,
    Keys,
    LogicalPlan,
    Needed,
    ParallelNode,
    Pruned,
    StateBound,
    StateFacts,
)
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.windows import demand


@dataclass(frozen=True)
class LookupJoin(ParallelNode):
    """``left JOIN table FOR SYSTEM_TIME AS OF left.proc_time``, INNER or LEFT. ``scan`` is not an input: the
    table is queried by key.

    ``right_keys`` are positions in the scan, whose predicate returned rows must meet. The residual, over left
    ++ scan, is tested on the pairs. Integers may be compared with narrower ones of the table. Output: left
    columns, then the scan's.

    An emitted row is never revised, whatever changes in the table.
    """

    no_history = "a lookup join"

    left: LogicalPlan
    scan: Scan
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: Expression | None = None

    def __post_init__(self) -> None:
        demand(self.kind in (JoinKind.INNER, JoinKind.LEFT), "a lookup join that is neither inner nor left")
        demand(
            bool(self.left_keys) and len(self.left_keys) == len(self.right_keys), "a lookup join without keys"
        )

    @property
    def only_ours(self) -> bool:
        return True

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.left,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, left=inputs[0])

    @cached_property
    def schema(self) -> Schema:
        right = self.scan.schema.nullable() if self.kind is JoinKind.LEFT else self.scan.schema
        return Schema(tuple(self.left.schema) + without_event_time(right))

    def text(self) -> str:
        scan, table = self.scan.schema, self.scan.table
        conditions = join_condition_text(
            (self.left.schema, scan), self.left_keys, self.right_keys, self.residual
        )
        where = "" if self.scan.predicate is None else f" where {expression_text(self.scan.predicate, scan)}"
        # synchronous lookups keep the order of rows; asynchronous ones have an output mode
        order = "one at a time"
        if lookup_option(table, "lookup.async"):
            order = str(lookup_option(table, "lookup.output-mode"))
        read = f"{self.scan.columns_text()}{where}"
        # the whole table is read at this interval; otherwise it is queried by key
        every_ms = reload_ms(table)
        if every_ms is not None:
            how = f"reading {read} again every {duration_text(every_ms * 1000)}, {order}"
        else:
            how = f"asking {read}, cache {lookup_option(table, 'lookup.cache')}, {order}"
        return f"LookupJoin {self.kind.value} on {conditions}, {how}"

    def operator_name(self) -> str:
        return f"{self.kind.value} lookup join {self.scan.table.name}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        left, right = inputs[0], self.scan.digest((), texts)
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        keys = (f"{left.columns[a]}={right.columns[b]}" for a, b in pairs)
        # the digest of the scan includes its predicate
        residual = ""
        if self.residual is not None:
            residual = texts.expression(self.residual, left.columns + right.columns)
        rows = hash_parts("lookup", self.kind.value, left.rows, right.rows, *keys, residual)
        return Digest(rows, mark_side("left", rows, left.columns) + mark_side("found", rows, right.columns))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        # the lookup key contains a key of the table: each row has at most one partner
        meets_one = any(key <= set(self.right_keys) for key in self.scan.unique_keys(()))
        return inputs[0] if meets_one else NO_KEYS

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return inputs[0]

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        residual = None if self.residual is None else rewrite(self.residual)
        # the scan is no input, so a rewrite of the plan reaches its predicate only here
        return self._changed(scan=self.scan.map_expressions(rewrite), residual=residual)

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        return ({i: i for i in range(len(self.left.schema))},)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """Only needed columns are queried from the table."""
        width = len(self.left.schema)
        reads = needed | columns_read([self.residual])
        left, of_left = pruner.narrow(self.left, {i for i in reads if i < width} | {*self.left_keys})
        # key columns are part of the answer: pairs are joined by them
        of_table = frozenset(i - width for i in reads if i >= width) | frozenset(self.right_keys)
        scan, of_scan = self.scan.prune_columns(of_table, pruner)
        assert isinstance(scan, Scan)
        moved = of_left | {width + old: len(left.schema) + new for old, new in of_scan.items()}
        residual = None if self.residual is None else self.residual.remap(moved)
        keys = tuple(of_left[key] for key in self.left_keys), tuple(of_scan[key] for key in self.right_keys)
        return LookupJoin(left, scan, self.kind, *keys, residual, subtasks=self.subtasks), moved

    def state_bound(self, facts: StateFacts) -> StateBound:
        return StateBound("rows that wait for the answer to their lookup")

    def refuse_updates(self, port: int) -> PenstockError | None:
        return PenstockError(
            "SQL-1322",
            "a lookup join needs an append-only input, but its input retracts rows: by then the "
            "lookup may return another row",
            hint="look up before the rows are grouped or joined, or window them, or write EMIT FINAL",
            sqlstate="0A000",
        )

    @property
    def clock_ports(self) -> tuple[int, ...]:
        return (0,)

    @property
    def pair_condition(self) -> Expression | None:
        return self.residual
