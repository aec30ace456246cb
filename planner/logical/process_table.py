"""Process table functions in the logical plan: a Python class over the partitions of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cached_property

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.process_table_functions import PythonProcessTable, TableDeclaration
from penstock.catalog.schema import Field, Role, Schema
from penstock.planner.expressions.nodes import Column, Expression, SortKey
from penstock.planner.logical.distribution import (
    ANY,
    InputFacts,
    Partitioning,
    Requirement,
    by_keys,
    move_keys,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts, number_parts
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, PartitionFacts, SettingReader
from penstock.planner.logical.plan import LogicalPlan, ParallelNode, StateBound, StateFacts
from penstock.planner.logical.windows import demand

ROWTIME = "rowtime"
"""The column that ``on_time`` adds behind the columns of the function."""


@dataclass(frozen=True)
class ProcessTable(ParallelNode):
    """The rows that a process table function emits for the rows of ``tables``, in the order of its
    declaration. ``names``: by table, the columns that the function sees, the first of the table's.

    ``partitions``: by table, the columns of PARTITION BY, of equal types in all. ``times``: by table the
    column of ``on_time``, or none at all. Columns: those of PARTITION BY of each table, or all of the only
    table if columns pass through. The columns of the function follow, then with ``times`` its ``rowtime``.

    ``orders``: by table, the columns of ORDER BY, the first an event time; none at all if no table has one.
    Rows of such a table are buffered until the watermark passes them. ``descending`` and ``nulls_first``: of
    each of these columns; none at all if all ascend with NULLs first.

    ``uid`` names the state: with it, state is found again although the tables below have changed.
    """

    no_history = "a process table function"
    keeps_written_expressions = True

    tables: tuple[LogicalPlan, ...]
    function: PythonProcessTable
    names: tuple[tuple[str, ...], ...]
    partitions: tuple[tuple[int, ...], ...]
    arguments: tuple[Expression, ...] = ()
    times: tuple[int, ...] = ()
    orders: tuple[tuple[int, ...], ...] = ()
    uid: str | None = None
    span: Span | None = field(default=None, compare=False)
    descending: tuple[tuple[bool, ...], ...] = ()
    nulls_first: tuple[tuple[bool, ...], ...] = ()

    def __post_init__(self) -> None:
        demand(
            len(self.tables) == len(self.function.tables) == len(self.partitions),
            "a process table function with another number of tables",
        )
        kinds = [
            [t.schema[i].type for i in keys] for t, keys in zip(self.tables, self.partitions, strict=True)
        ]
        demand(all(one == kinds[0] for one in kinds), "a process table function over unlike partitions")
        demand(not any(one.columns() for one in self.arguments), "an argument that is no constant")

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return self.tables

    def with_inputs(self, inputs: tuple[LogicalPlan, ...]) -> LogicalPlan:
        return replace(self, tables=inputs)

    @property
    def only_ours(self) -> bool:
        return True

    @property
    def goes_by_time(self) -> bool:
        return bool(self.times or self.orders)

    @property
    def keeps_state(self) -> bool:
        return self.function.keeps_state or bool(self.orders)

    def drops_late(self, facts: OperatorFacts) -> bool:
        return bool(self.orders)

    @property
    def declarations(self) -> tuple[TableDeclaration, ...]:
        """The declarations of the tables."""
        return tuple(table for _, table in self.function.tables)

    @cached_property
    def schema(self) -> Schema:
        carried: list[Field] = []
        for table, names, keys in zip(self.tables, self.names, self.partitions, strict=True):
            positions = range(len(names)) if self.function.passes_columns else keys
            # only rowtime advances with the watermark: other times may be behind it
            carried += (replace(table.schema[i], name=names[i], role=None) for i in positions)
        fields = [*carried, *self.function.result]
        if self.times:
            first = self.tables[0].schema[self.times[0]]
            roles = {table.schema[i].role for table, i in zip(self.tables, self.times, strict=True)}
            role = Role.WINDOW_TIME if Role.WINDOW_TIME in roles else first.role
            fields.append(Field(ROWTIME, first.type, True, role))
        return Schema(tuple(_with_distinct_names(fields)))

    def text(self) -> str:
        parts = []
        orders = self.orders or ((),) * len(self.tables)
        for port, ((name, declared), names, keys, order) in enumerate(
            zip(self.function.tables, self.names, self.partitions, orders, strict=True)
        ):
            rows = "" if declared.set_semantics else " row by row"
            per = f" per {', '.join(names[i] for i in keys)}" if keys else ""
            keys_text = ", ".join(names[i] + self._direction(port, at) for at, i in enumerate(order))
            by = f" by {keys_text}" if order else ""
            parts.append(f"{name}{rows}{per}{by}")
        parts += [f"{n} => {a}" for (n, _), a in zip(self.function.arguments, self.arguments, strict=True)]
        if self.times:
            times = (names[i] for names, i in zip(self.names, self.times, strict=True))
            parts.append(f"on time {', '.join(times)}")
        parts += [] if self.uid is None else [f"uid '{self.uid}'"]
        return f"ProcessTable {self.function.name}({', '.join(parts)})"

    def _direction(self, port: int, at: int) -> str:
        """Return what EXPLAIN shows behind a column of ORDER BY."""
        if not self.descending:
            return ""
        descends, first = self.descending[port][at], self.nulls_first[port][at]
        nulls = "" if first is not descends else f" NULLS {'FIRST' if first else 'LAST'}"
        return f"{' DESC' if descends else ''}{nulls}"

    def sort_keys(self, port: int) -> tuple[SortKey, ...]:
        """Return the order of the rows of a table with ORDER BY."""
        columns, schema = self.orders[port], self.tables[port].schema
        down = self.descending[port] if self.descending else (False,) * len(columns)
        nulls = self.nulls_first[port] if self.nulls_first else (True,) * len(columns)
        return tuple(
            SortKey(Column(schema[i].type, schema[i].nullable, index=i), descends, first)
            for i, descends, first in zip(columns, down, nulls, strict=True)
        )

    def operator_name(self) -> str:
        return f"process {self.function.name}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        """A call with a uid is that uid, whatever is below: its state holds no rows of the tables."""
        head = ["process table", self.function.name.lower(), self.function.version]
        if self.uid is None:
            head += [texts.expression(one, ()) for one in self.arguments]
            for below, keys in zip(inputs, self.partitions, strict=True):
                head += [below.rows, *below.columns, "per", *(below.columns[i] for i in keys), "end"]
            # the function reads columns by their names
            head += [name for names in self.names for name in names]
            head += [str(i) for i in self.times]
            head += [f"by {order}" for order in self.orders]
            head += [f"down {one}" for one in (*self.descending, *self.nulls_first)]
        else:
            kinds = (self.tables[0].schema[i].type for i in self.partitions[0])
            head += ["uid", self.uid, *map(texts.kind, kinds)]
        rows = hash_parts(*head)
        return Digest(rows, number_parts("processed", rows, len(self.schema)))

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        return not self.function.emits_updates

    def update_cause(self) -> str:
        return f"{self.function.name} retracts rows it has emitted"

    def refuse_updates(self, port: int) -> PenstockError | None:
        name, declared = self.function.tables[port]
        if declared.updates:
            return None
        return PenstockError(
            "SQL-1324",
            f"{self.function.name} takes rows that are never retracted, and its table {name} is updated",
            span=self.span,
            hint="process the rows before they are grouped, or declare "
            f"{name} = penstock.table_input(updates=True) and handle retractions",
            sqlstate="0A000",
        )

    @property
    def unsteady_function(self) -> str | None:
        return None if self.function.deterministic else self.function.name

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        if self.function.passes_columns:
            return inputs[0]
        moved, first = [], 0
        for known, keys in zip(inputs, self.partitions, strict=True):
            moved.append(move_keys(known, {key: first + i for i, key in enumerate(keys)}))
            first += len(keys)
        return frozenset[tuple[int, ...]]().union(*moved)

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return tuple(
            by_keys(keys) if declared.set_semantics else ANY
            for declared, keys in zip(self.declarations, self.partitions, strict=True)
        )

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        # a filter on PARTITION BY drops whole partitions; with several tables all would need it
        if len(self.tables) > 1:
            return ({},) * len(self.tables)
        if self.function.passes_columns:
            return ({key: key for key in self.partitions[0]},)
        return (dict(enumerate(self.partitions[0])),)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(arguments=tuple(map(rewrite, self.arguments)))

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> PartitionFacts:
        return PartitionFacts(tuple(map(derived.insert_only, self.tables)), derived.ttl_ms(self))

    def state_ttl_ms(self, facts: StateFacts) -> int:
        """The time to live of state that declares none."""
        return facts.default_ttl_ms

    def state_bound(self, facts: StateFacts) -> StateBound:
        """The function clears its state itself; what it does not clear stays until its time to live."""
        if not self.keeps_state:
            return StateBound(None)
        words = [name for name, _ in self.function.state]
        words += ["timers"] if self.function.has_timers else []
        pending = "rows until the watermark passes them" if self.orders else ""
        if not words:
            return StateBound(pending)
        keeps = f"{', '.join(words)} of each partition{f', and {pending}' if pending else ''}"
        kept = [
            d for _, d in self.function.state if not (facts.default_ttl_ms if d.ttl_ms is None else d.ttl_ms)
        ]
        if not kept or not self.partitions[0]:
            return StateBound(keeps)
        names = ", ".join(self.names[0][i] for i in self.partitions[0])
        why = f"each distinct ({names}) keeps its state until {self.function.name} clears it"
        return self._grows(facts, keeps, why)


def _with_distinct_names(fields: list[Field]) -> list[Field]:
    """Return the fields, the second of one name with a 0 behind it, as Flink numbers them."""
    seen: set[str] = set()
    named = []
    for one in fields:
        name, number = one.name, 0
        while name.lower() in seen:
            name, number = f"{one.name}{number}", number + 1
        seen.add(name.lower())
        named.append(one.renamed(name))
    return named
