"""The logical plan: a closed set of frozen nodes.

A node answers for itself alone, given the answers of its inputs: its line of EXPLAIN, its digest, its keys,
changelog mode, partitioning and requirements. Recursion and caches are in ``penstock.optimizer.properties``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import cached_property

from penstock.catalog.connectors.registry import gives_changes
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import Boolean, Null, Row, is_integer
from penstock.planner.expressions.nodes import (
    Cast,
    Column,
    Expression,
    Literal,
    expression_role,
)
from penstock.planner.logical.distribution import (
    ANY,
    UNKNOWN,
    Edge,
    Forward,
    InputFacts,
    Partition,
    Partitioning,
    Requirement,
    by_keys,
    move_keys,
)
from penstock.planner.logical.node_digest import ExactTexts, Meaning, hash_parts, number_parts, table_text
from penstock.planner.logical.node_text import edge_text, expression_text, labelled, window_text
from penstock.planner.logical.windows import (
    Windowing,
    demand,
    fields_in_windows,
    window_fields,
)


def _reads_inside(expression: Expression, schema: Schema) -> bool:
    return all(0 <= index < len(schema) for index in expression.columns())


Keys = frozenset[frozenset[int]]
"""Sets of columns no two rows of a node agree on; the empty set: there is at most one row."""

NO_KEYS: Keys = frozenset()


@dataclass(frozen=True)
class LogicalPlan:
    """Base of plan nodes."""

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        """The nodes rows come from, by port."""
        return ()

    @property
    def schema(self) -> Schema:
        """The columns of the rows this node gives."""
        raise AssertionError(type(self))

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        """Return the same node over other inputs."""
        return self

    @property
    def only_ours(self) -> bool:
        """Whether no bounded backend has a word for this node, so that our own runtime runs it over
        bounded rows too.
        """
        return False

    @property
    def goes_by_time(self) -> bool:
        """Whether the node needs the event time of its input."""
        return False

    def transform(self, rewrite: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
        """Return the plan rebuilt bottom-up through ``rewrite``; the one recursion over plans."""
        inputs = self.inputs
        changed = tuple(node.transform(rewrite) for node in inputs)
        same = all(new is old for new, old in zip(changed, inputs, strict=True))
        return rewrite(self if same else self.with_inputs(changed))

    def walk(self) -> Iterator[LogicalPlan]:
        """Yield this node and all nodes below it, parents first."""
        yield self
        for node in self.inputs:
            yield from node.walk()

    def text(self) -> str:
        """Return one line saying what the node does, columns by name: EXPLAIN's line."""
        raise AssertionError(type(self))

    def operator_name(self) -> str:
        """Return the short name of the operator that runs the node."""
        return type(self).__name__.lower()

    @property
    def subplans(self) -> tuple[LogicalPlan, ...]:
        """The plans its rows are computed from: its inputs, or what a backend computes first."""
        return self.inputs

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        """Return what the rows and each column mean, given what those of the subplans do. Operator ids are
        made of it: what it hashes, and in which order, never changes.
        """
        raise AssertionError(type(self))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        """Return what identifies the rows, given what identifies those of the subplans."""
        return NO_KEYS

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        """Return by whose hash the rows lie over their subtasks, given how those of the inputs lie."""
        return UNKNOWN

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        """Return whether rows are never retracted, given the same of each input. ``loaded_first``: the ports
        that are read to their end before the others.
        """
        return all(inputs)

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        """Return how the rows of each input must lie. ``copied``: the side of a join all subtasks get."""
        return (ANY,) * len(self.inputs)


@dataclass(frozen=True)
class UnaryNode(LogicalPlan):
    """Base of nodes with one input; the schema is the input's unless the node says otherwise."""

    input: LogicalPlan

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class PassThroughNode(UnaryNode):
    """Base of nodes that hand rows on, or drop them: columns at their places come first, and no row comes
    more often than it came.
    """

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        return inputs[0]

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return inputs[0]


@dataclass(frozen=True)
class Scan(LogicalPlan):
    """Read a table's physical and metadata columns (computed columns and watermarks stand above it as Project
    and WatermarkAssign).

    ``columns`` are positions into ``table.source_schema``; ``predicate`` (over the scan's own output) is what
    the connector promised to apply.
    """

    table: CatalogTable
    columns: tuple[int, ...]
    predicate: Expression | None = None

    @cached_property
    def schema(self) -> Schema:
        return self.table.source_schema.select(self.columns)

    def text(self) -> str:
        kept = "" if self.predicate is None else f" where {expression_text(self.predicate, self.schema)}"
        return f"Scan {self.columns_text()}{kept}"

    def columns_text(self) -> str:
        """Return the table and the columns read of it; a row that is not read whole has its fields listed."""
        declared = {field.name: field.type for field in self.table.schema}
        texts = []
        for column in self.schema:
            if not isinstance(column.type, Row) or declared.get(column.name, column.type) == column.type:
                texts.append(column.name)
            else:
                texts.append(f"{column.name}({', '.join(name for name, _ in column.type.fields)})")
        return f"{self.table.name} [{', '.join(texts)}]"

    def operator_name(self) -> str:
        return f"source {self.table.name}"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        table = table_text(self.table)
        source = self.table.source_schema
        # not which fields of a row are read: one more changes nothing of the others
        declared = {column.name: column.type for column in self.table.schema}
        read = [source[i] for i in self.columns]
        columns = tuple(
            hash_parts("column", table, one.name.lower(), texts.kind(declared.get(one.name, one.type)))
            for one in read
        )
        predicate = "" if self.predicate is None else texts.expression(self.predicate, columns)
        return Meaning(hash_parts("scan", table, predicate), columns)

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        source = self.table.source_schema
        positions = {source[column].name.lower(): i for i, column in enumerate(self.columns)}
        key = [positions.get(name.lower()) for name in self.table.primary_key]
        return frozenset({frozenset(i for i in key if i is not None)}) if key and None not in key else NO_KEYS

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return not gives_changes(self.table)


@dataclass(frozen=True)
class Values(LogicalPlan):
    """Literal rows."""

    rows: tuple[tuple[Literal, ...], ...]
    row_schema: Schema

    def __post_init__(self) -> None:
        demand(all(len(row) == len(self.row_schema) for row in self.rows), "VALUES rows of unequal width")

    @cached_property
    def schema(self) -> Schema:
        return self.row_schema

    def text(self) -> str:
        count = len(self.rows)
        return f"Values {count} row{'' if count == 1 else 's'} [{', '.join(self.schema.names)}]"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        cells = (texts.expression(cell, ()) for row in self.rows for cell in row)
        rows = hash_parts("values", *cells, str(len(self.rows)))
        return Meaning(rows, tuple(hash_parts(rows, str(i)) for i in range(len(self.schema))))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        return frozenset({frozenset()}) if len(self.rows) <= 1 else NO_KEYS


@dataclass(frozen=True)
class BoundedInput(LogicalPlan):
    """A bounded subplan that the bounded backend computes and that flows into a streaming plan as Arrow
    batches (laid by ``penstock.optimizer.bounded_subplans``).

    ``readers``: how many parts of the plan read it as it stands; it is computed once for all of them.
    """

    plan: LogicalPlan
    readers: int = field(default=1, compare=False)

    @cached_property
    def schema(self) -> Schema:
        return self.plan.schema.without_roles()

    def text(self) -> str:
        once = f", computed once for {self.readers} readers" if self.readers > 1 else ""
        return f"BoundedInput [{', '.join(self.schema.names)}]{once}"

    def operator_name(self) -> str:
        tables = {node.table.name for node in self.plan.walk() if isinstance(node, Scan)}
        return f"bounded {', '.join(sorted(tables))}"

    @property
    def subplans(self) -> tuple[LogicalPlan, ...]:
        return (self.plan,)

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        return Meaning(hash_parts("bounded", inputs[0].rows), inputs[0].columns)

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        return inputs[0]


@dataclass(frozen=True)
class Filter(PassThroughNode):
    """Keep the rows whose predicate is TRUE."""

    predicate: Expression

    def __post_init__(self) -> None:
        demand(isinstance(self.predicate.type, Boolean | Null), "a filter's predicate is not BOOLEAN")
        demand(_reads_inside(self.predicate, self.input.schema), "a filter reads outside its input")

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema

    def text(self) -> str:
        return f"Filter {expression_text(self.predicate, self.input.schema)}"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        below = inputs[0]
        predicate = texts.expression(self.predicate, below.columns)
        return Meaning(hash_parts("filter", below.rows, predicate), below.columns)


@dataclass(frozen=True)
class Project(UnaryNode):
    """Compute one column per expression. A bare Column keeps its role (time attributes survive renaming);
    a bare PROCTIME() is processing time.
    """

    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        demand(len(self.expressions) == len(self.names), "a projection with unequal names and expressions")
        demand(
            all(_reads_inside(e, self.input.schema) for e in self.expressions),
            "a projection reads outside its input",
        )

    @cached_property
    def schema(self) -> Schema:
        fields = []
        for name, expression in zip(self.names, self.expressions, strict=True):
            fields.append(
                Field(
                    name,
                    expression.type,
                    expression.nullable,
                    expression_role(expression, self.input.schema.fields),
                )
            )
        return Schema(tuple(fields))

    def text(self) -> str:
        items = zip(self.expressions, self.names, strict=True)
        return f"Project {', '.join(labelled(expression_text(e, self.input.schema), n) for e, n in items)}"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        below = inputs[0]
        return Meaning(below.rows, tuple(texts.column(e, below.columns) for e in self.expressions))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        places: dict[int, int] = {}
        for index, expression in enumerate(self.expressions):
            whole = (
                isinstance(expression, Cast)
                and not expression.safe
                and is_integer(expression.type)
                and is_integer(expression.arg.type)
            )
            kept = expression.children[0] if whole else expression  # unlike whole numbers stay unlike
            if isinstance(kept, Column):
                places.setdefault(kept.index, index)
        return frozenset(frozenset(places[i] for i in key) for key in inputs[0] if key <= places.keys())

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        places: dict[int, int] = {}
        for index, expression in enumerate(self.expressions):
            if isinstance(expression, Column):
                places.setdefault(expression.index, index)
        return move_keys(inputs[0], places)


@dataclass(frozen=True)
class WatermarkAssign(PassThroughNode):
    """Make ``time_column`` the event-time attribute; a row's ``watermark`` expression (same type) bounds
    its split's watermark from below.
    """

    time_column: int
    watermark: Expression

    @cached_property
    def schema(self) -> Schema:
        fields = list(self.input.schema.fields)
        fields[self.time_column] = replace(fields[self.time_column], role=Role.EVENT_TIME)
        return Schema(tuple(fields))

    def text(self) -> str:
        source = self.input.schema
        return f"WatermarkAssign {source[self.time_column].name} AS {expression_text(self.watermark, source)}"

    def operator_name(self) -> str:
        return f"watermark {self.input.schema[self.time_column].name}"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        below = inputs[0]
        watermark = texts.expression(self.watermark, below.columns)
        rows = hash_parts("watermark", below.rows, below.columns[self.time_column], watermark)
        return Meaning(rows, below.columns)


@dataclass(frozen=True)
class WindowTable(PassThroughNode):
    """A windowing table-valued function: each row once per window it falls in, with window_start, window_end,
    window_time appended.

    Rows whose time is NULL are dropped and counted.
    """

    window: Windowing

    def __post_init__(self) -> None:
        demand(
            self.input.schema[self.window.time_column].is_event_time,
            "a window on a column that is no time attribute",
        )

    @property
    def goes_by_time(self) -> bool:
        return True

    @cached_property
    def schema(self) -> Schema:
        kind = self.input.schema[self.window.time_column].type
        return Schema(
            fields_in_windows(self.input.schema.fields, self.window)
            + tuple(replace(f, type=kind) for f in window_fields())
        )

    def text(self) -> str:
        return f"WindowTable {window_text(self.window, self.input.schema)}"

    def operator_name(self) -> str:
        return f"{self.window.name} windows"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        below = inputs[0]
        rows = hash_parts("windows", below.rows, texts.window(self.window, below.columns))
        return Meaning(rows, below.columns + number_parts("window", rows, 3))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        if not (self.window.overlapping or self.window.merging):
            return inputs[0]
        return frozenset(key | {len(self.input.schema) + 1} for key in inputs[0])

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return self.window.merging or inputs[0]

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        """Windows that rows make are made of all rows of their partition."""
        return (by_keys(self.window.partition_keys),) if self.window.merging else (ANY,)


@dataclass(frozen=True)
class Union(LogicalPlan):
    """UNION ALL of inputs of one layout."""

    branches: tuple[LogicalPlan, ...]

    def __post_init__(self) -> None:
        types = [[field.type for field in branch.schema] for branch in self.branches]
        demand(len(types) >= 2 and all(kinds == types[0] for kinds in types), "a union of unlike inputs")

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return self.branches

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, branches=inputs)

    @cached_property
    def schema(self) -> Schema:
        fields = []
        for position, first in enumerate(self.branches[0].schema):
            others = [branch.schema[position] for branch in self.branches]
            role = first.role if all(other.role is first.role for other in others) else None
            fields.append(replace(first, nullable=any(other.nullable for other in others), role=role))
        return Schema(tuple(fields))

    def text(self) -> str:
        return f"Union {len(self.branches)} inputs"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        branches = (part for one in inputs for part in (one.rows, *texts.ties(one.columns)))
        rows = hash_parts("union", *branches)
        columns = [one.columns for one in inputs]
        places = (texts.place(i, columns) for i in range(len(self.schema)))
        return Meaning(rows, tuple(hash_parts("column", rows, *place) for place in places))

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return frozenset.intersection(*inputs)


@dataclass(frozen=True)
class Exchange(PassThroughNode):
    """An edge laid by ``penstock.optimizer.exchange_placement``: how the input's rows travel to the node
    above.
    """

    edge: Edge

    def text(self) -> str:
        return f"Exchange {edge_text(self.edge, self.input.schema)}"

    def digest(self, inputs: tuple[Meaning, ...], texts: ExactTexts) -> Meaning:
        return inputs[0]

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        if isinstance(self.edge, Partition):
            return frozenset({self.edge.keys}) if self.edge.keys else UNKNOWN
        return inputs[0] if isinstance(self.edge, Forward) else UNKNOWN
