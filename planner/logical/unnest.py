"""Table functions in the logical plan: each row is joined with the rows that a function returns for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.python_functions import PythonTable
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.planner.expressions.nodes import Expression, columns_read
from penstock.planner.logical.distribution import Partitioning, move_keys
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts, number_parts
from penstock.planner.logical.node_text import expression_text
from penstock.planner.logical.plan import NO_KEYS, ColumnPruner, Keys, LogicalPlan, Needed, Pruned, UnaryNode
from penstock.planner.logical.windows import demand

LISTED = frozenset({"unnest", "explode", "posexplode"})
"""Functions that return the elements of one array or map, in order."""


@dataclass(frozen=True)
class TableCall:
    """A call of a table function: its name, its arguments over the rows, of exactly the required types, and
    its output columns.

    ``body`` is the Python function, if it is one. A function without arguments receives a constant, for the
    number of rows.
    """

    function: str
    args: tuple[Expression, ...]
    columns: tuple[Field, ...]
    body: PythonTable | None = None

    def map(self, rewrite: Callable[[Expression], Expression]) -> TableCall:
        """Return the call with ``rewrite`` applied to each argument as a whole."""
        return replace(self, args=tuple(rewrite(arg) for arg in self.args))

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class Unnest(UnaryNode):
    """Each row once per row that the function returns for it. Output: columns ``keep`` of the input, columns
    ``gives`` of the function, then the ordinality.

    ``outer``: a row without function rows is emitted once, with NULLs. ``ordinality`` numbers the function
    rows of each input row from 1.

    ``condition``, of an outer one, is over the input's columns, all function columns and the number. Only
    function rows for which it is TRUE count.

    The node has no state; weights, times and lateness of the input rows pass through.
    """

    no_history = None

    call: TableCall
    keep: tuple[int, ...]
    gives: tuple[int, ...]
    outer: bool = False
    ordinality: bool = False
    condition: Expression | None = None

    def __post_init__(self) -> None:
        # keep and gives are positions in the input and in the function's columns
        demand(
            all(0 <= i < len(self.input.schema) for i in self.keep),
            "a table function keeps a column that does not exist",
        )
        demand(
            all(0 <= i < len(self.call.columns) for i in self.gives),
            "a table function emits a column it does not have",
        )
        # arguments are over the input, the condition over input and function columns
        reads = frozenset[int]().union(*(arg.columns() for arg in self.call.args))
        demand(
            all(0 <= i < len(self.input.schema) for i in reads), "a table function reads outside its input"
        )
        demand(
            self.condition is None or self.outer,
            "a condition of a table function's rows belongs to an outer one",
        )

    @property
    def only_ours(self) -> bool:
        # backends run the functions that list elements, without a condition on the rows
        return self.condition is not None or self.call.function not in LISTED

    @property
    def keeps_state(self) -> bool:
        return False

    @cached_property
    def schema(self) -> Schema:
        carried = tuple(self.input.schema[i] for i in self.keep)
        produced = tuple(self.call.columns[i] for i in self.gives)
        if self.outer:
            produced = tuple(replace(field, nullable=True) for field in produced)
        return Schema(
            carried + produced + ((Field("ordinality", BIGINT, self.outer),) if self.ordinality else ())
        )

    def text(self) -> str:
        schema = self.input.schema
        names = [self.call.columns[i].name for i in self.gives] + (["ordinality"] if self.ordinality else [])
        call = f"{self.call.function}({', '.join(expression_text(arg, schema) for arg in self.call.args)})"
        condition = "" if self.condition is None else f" ON {self.condition}"
        carried = ", ".join(schema[i].name for i in self.keep) or "nothing"
        outer = "outer " if self.outer else ""
        return f"Unnest {outer}{call} AS {', '.join(names)}{condition}, keeping {carried}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below, call = inputs[0], self.call
        # renaming the output columns changes no digest
        args = (texts.expression(arg, below.columns) for arg in call.args)
        version = "" if call.body is None else call.body.version
        # the version of a Python function: a changed body gives other rows
        rows = hash_parts("unnest", below.rows, call.function, version, str(self.outer), *args)
        # hashed apart, so that nodes without a condition keep their earlier digest
        if self.condition is not None:
            given_all = number_parts("given", rows, len(call.columns))
            every = (*below.columns, *given_all, hash_parts("nth", rows))
            rows = hash_parts("unnest on", rows, texts.expression(self.condition, every))
        produced = tuple(hash_parts("given", rows, str(i)) for i in self.gives)
        number = (hash_parts("nth", rows),) if self.ordinality else ()
        return Digest(rows, (*(below.columns[i] for i in self.keep), *produced, *number))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        # without numbers an array may hold one element twice; an outer row has no number
        if self.outer or not self.ordinality:
            return NO_KEYS
        positions = {old: new for new, old in enumerate(self.keep)}
        # (key of the input, ordinality)
        last = len(self.schema) - 1
        carried = (key for key in inputs[0] if key <= positions.keys())
        return frozenset(frozenset({*(positions[i] for i in key), last}) for key in carried)

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return move_keys(inputs[0], {old: new for new, old in enumerate(self.keep)})

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        condition = None if self.condition is None else rewrite(self.condition)
        return self._changed(call=self.call.map(rewrite), condition=condition)

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        return (dict(enumerate(self.keep)),)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        """The array is read as an argument; it is rarely in the output beside its elements."""
        width, last = len(self.keep), len(self.keep) + len(self.gives)
        carried = [i for i in range(width) if i in needed]
        produced = [i for i in range(width, last) if i in needed]
        numbered = self.ordinality and last in needed
        # One column stays to stand for the row where nobody needs any.
        if not carried and not produced and not numbered:
            produced = [width] if self.gives else []
            numbered = not self.gives and self.ordinality
        before, tested = len(self.input.schema), columns_read([self.condition])
        of_input = frozenset(i for i in tested if i < before)
        reads = frozenset(self.keep[i] for i in carried) | columns_read(self.call.args) | of_input
        child, positions = pruner.prune(self.input, reads)
        call = self.call.map(lambda arg: arg.remap(positions))
        # the condition reads input ++ function columns ++ number; only the input shrinks
        moved = {**positions, **{i: i - before + len(child.schema) for i in tested - of_input}}
        condition = None if self.condition is None else self.condition.remap(moved)
        keep = tuple(positions[self.keep[i]] for i in carried)
        gives = tuple(self.gives[i - width] for i in produced)
        pruned = Unnest(child, call, keep, gives, self.outer, numbered, condition)
        order = [*carried, *produced, *([last] if numbered else [])]
        return pruned, {old: new for new, old in enumerate(order)}

    @property
    def is_row_wise(self) -> bool:
        return True

    @property
    def unsteady_function(self) -> str | None:
        body = self.call.body
        return self.call.function if body is not None and not body.deterministic else None
