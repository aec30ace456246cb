"""MATCH_RECOGNIZE in the logical plan: the matches of a row pattern in each ordered partition, and their
measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import DataType
from penstock.planner.expressions.nodes import AggregateCall, Column, Expression, SortKey
from penstock.planner.expressions.row_pattern import Pattern
from penstock.planner.logical.distribution import (
    InputFacts,
    Partitioning,
    Requirement,
    by_keys,
    move_keys,
)
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import duration_text, keys_text, order_text, renamed_text
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, PartitionFacts, SettingReader
from penstock.planner.logical.plan import LogicalPlan, ParallelNode, StateBound, StateFacts, UnaryNode
from penstock.planner.logical.windows import demand

Rows = frozenset[int]
"""A set of variables, by number: all rows of the match that are theirs."""


@dataclass(frozen=True)
class MatchValue:
    """A value of a match that a DEFINE or a measure reads as a column. ``final`` reads the whole match,
    otherwise only its rows so far.
    """

    type: DataType
    nullable: bool
    final: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class RowValue(MatchValue):
    """An expression over the input at one row of the match. The row is ``offset`` rows from the first or last
    of ``rows``, then ``before`` rows back in the partition.
    """

    expression: Expression
    rows: Rows
    first: bool = False
    offset: int = 0
    before: int = 0

    def map(self, rewrite: Callable[[Expression], Expression]) -> RowValue:
        """Return the value with ``rewrite`` applied to its expression as a whole."""
        return replace(self, expression=rewrite(self.expression))

    def __str__(self) -> str:
        return (
            f"{_sign(self)}{'FIRST' if self.first else 'LAST'}({self.expression} of "
            f"{sorted(self.rows)}, {self.offset}) before {self.before}"
        )

    def words(self, names: tuple[str, ...], source: Sequence[str]) -> str:
        """Return the value as text."""
        text = _argument(self.expression, self.rows, names, source)
        # LAST(A.x, 0) of a plain column is written A.x
        if self.first or self.offset or not isinstance(self.expression, Column):
            text = f"{'FIRST' if self.first else 'LAST'}({text}{f', {self.offset}' if self.offset else ''})"
        return f"PREV({text}, {self.before})" if self.before else text

    def digest(self, columns: tuple[str, ...], texts: ExactTexts) -> str:
        """Return the digest of the value, over the digests of the input's columns."""
        rows = (str(number) for number in sorted(self.rows))
        # variables by number: their names are part of the node's digest
        position = (*rows, str(self.first), str(self.offset), str(self.before))
        return hash_parts("row", str(self.final), texts.expression(self.expression, columns), *position)


@dataclass(frozen=True)
class RowsAggregate(MatchValue):
    """An aggregate over the input at all of ``rows``."""

    call: AggregateCall
    rows: Rows

    def map(self, rewrite: Callable[[Expression], Expression]) -> RowsAggregate:
        """Return the value with ``rewrite`` applied to each expression of its call as a whole."""
        return replace(self, call=self.call.map(rewrite))

    def __str__(self) -> str:
        return f"{_sign(self)}{self.call} of {sorted(self.rows)}"

    def words(self, names: tuple[str, ...], source: Sequence[str]) -> str:
        """Return the value as text."""
        argument = (
            _argument(self.call.args[0], self.rows, names, source)
            if self.call.args
            else f"{_rows(self.rows, names)}*"
        )
        return f"{self.call.function}({argument})"

    def digest(self, columns: tuple[str, ...], texts: ExactTexts) -> str:
        """Return the digest of the value, over the digests of the input's columns."""
        rows = (str(number) for number in sorted(self.rows))
        return hash_parts("rows", str(self.final), texts.call(self.call, columns), *rows)


class Fact(StrEnum):
    """Functions of a match that read no column."""

    CLASSIFIER = "CLASSIFIER"
    NUMBER = "MATCH_NUMBER"
    ROWTIME = "MATCH_ROWTIME"


@dataclass(frozen=True)
class MatchFact(MatchValue):
    """The variable of the last row (CLASSIFIER), the number of the match in its partition, or the time of its
    last row.
    """

    fact: Fact

    def map(self, rewrite: Callable[[Expression], Expression]) -> MatchFact:
        """Return the value itself: it has no expression."""
        return self

    def __str__(self) -> str:
        return f"{_sign(self)}{self.fact.value}()"

    def words(self, names: tuple[str, ...], source: Sequence[str]) -> str:
        """Return the value as text."""
        return f"{self.fact.value}()"

    def digest(self, columns: tuple[str, ...], texts: ExactTexts) -> str:
        """Return the digest of the value."""
        return hash_parts("fact", str(self.final), self.fact.value)


def _sign(value: MatchValue) -> str:
    return "FINAL " if value.final else ""


def _rows(rows: Rows, names: tuple[str, ...]) -> str:
    # all variables: the value is written without a prefix
    if len(rows) == len(names):
        return ""
    return f"{'|'.join(names[number] for number in sorted(rows))}."


def _argument(expression: Expression, rows: Rows, names: tuple[str, ...], source: Sequence[str]) -> str:
    prefix = _rows(rows, names)

    def renamed(node: Expression) -> Expression:
        return replace(node, name=f"{prefix}{source[node.index]}") if isinstance(node, Column) else node

    return str(expression.transform(renamed))


Value = RowValue | RowsAggregate | MatchFact


@dataclass(frozen=True)
class Definition:
    """The DEFINE condition of a variable, over ``values`` by position. The row being tried counts as the
    variable's last row.
    """

    variable: int
    condition: Expression
    values: tuple[Value, ...]

    def map(self, rewrite: Callable[[Expression], Expression]) -> Definition:
        """Return the definition with ``rewrite`` applied to its condition and the expressions of its
        values.
        """
        return replace(
            self, condition=rewrite(self.condition), values=tuple(value.map(rewrite) for value in self.values)
        )

    def __str__(self) -> str:
        return f"{self.variable} AS {self.condition}, values=({', '.join(map(str, self.values))})"


class SkipTo(StrEnum):
    """AFTER MATCH SKIP: where the search for the next match begins. That is behind the last row, at the
    second row, or at the first or last row of some variables.
    """

    PAST_LAST_ROW = "past last row"
    NEXT_ROW = "to next row"
    FIRST = "to first"
    LAST = "to last"


@dataclass(frozen=True)
class MatchRecognize(UnaryNode, ParallelNode):
    """The matches of a row pattern: the earliest first, and among those that begin at one row the preferred.
    The output is one row per match, or with ``all_rows`` each row of the match.

    Columns: those of the partition, or with ``all_rows`` all of the input, then the measures, over ``values``
    by position.

    ``order`` begins with an event-time attribute, ascending; all columns break ties. Rows without a time are
    dropped and counted. Rows are buffered until the watermark has passed them.

    ``within_us`` is the maximum time between the first and last row of a match. ``skip_rows`` are the
    variables of SKIP TO FIRST and LAST.
    """

    no_history = "MATCH_RECOGNIZE"
    keeps_written_expressions = True

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: Pattern
    variables: tuple[str, ...]
    definitions: tuple[Definition, ...]
    values: tuple[Value, ...]
    measures: tuple[Expression, ...]
    names: tuple[str, ...]
    all_rows: bool = False
    skip: SkipTo = SkipTo.PAST_LAST_ROW
    skip_rows: Rows = frozenset()
    within_us: int | None = None
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # order[0] is the event time: rows are matched in its order
        demand(len(self.measures) == len(self.names), "MATCH_RECOGNIZE with unequal names and measures")
        demand(
            isinstance(self.order[0].expression, Column), "MATCH_RECOGNIZE whose first order key is no column"
        )

    @property
    def only_ours(self) -> bool:
        return True

    @property
    def goes_by_time(self) -> bool:
        return True

    @property
    def time_column(self) -> int:
        """The position of the event time in the input."""
        key = self.order[0].expression
        assert isinstance(key, Column)
        return key.index

    @property
    def counts(self) -> bool:
        """Whether MATCH_NUMBER is read, so that matches are numbered."""
        return any(isinstance(value, MatchFact) and value.fact is Fact.NUMBER for value in self.values)

    @property
    def tells_time(self) -> bool:
        """Whether MATCH_ROWTIME is read, which is a time attribute of the output."""
        return any(isinstance(value, MatchFact) and value.fact is Fact.ROWTIME for value in self.values)

    @property
    def history(self) -> int:
        """The number of rows before a match that its values may read."""
        # PREV(A.x, 3) in a measure or a condition
        every = [*self.values, *(value for definition in self.definitions for value in definition.values)]
        return max((value.before for value in every if isinstance(value, RowValue)), default=0)

    @cached_property
    def schema(self) -> Schema:
        source = self.input.schema
        carried = range(len(source)) if self.all_rows else self.partition
        fields = [replace(source[i], role=None) for i in carried]
        for name, measure in zip(self.names, self.measures, strict=True):
            # a measure that is one value as it is, not computed over values
            value = self.values[measure.index] if isinstance(measure, Column) else None
            # MATCH_ROWTIME() is a time attribute of the output
            timed = isinstance(value, MatchFact) and value.fact is Fact.ROWTIME
            fields.append(
                Field(name, measure.type, measure.nullable, source[self.time_column].role if timed else None)
            )
        return Schema(tuple(fields))

    def text(self) -> str:
        schema = self.input.schema
        measures = "".join(
            f", {self._value_text(measure, self.values)} AS {name}"
            for measure, name in zip(self.measures, self.names, strict=True)
        )
        defined = ", ".join(
            f"{self.variables[d.variable]} AS {self._value_text(d.condition, d.values)}"
            for d in self.definitions
        )
        rows = "|".join(self.variables[number] for number in sorted(self.skip_rows))
        # EXPLAIN prints the clauses in one line: pattern, time, keys, order, output, measures, definitions
        within = "" if self.within_us is None else f" within {duration_text(self.within_us)}"
        head = (
            f"MatchRecognize ({self.pattern}){within}{keys_text(' per', self.partition, schema)} by "
            f"{order_text(self.order, schema)}"
        )
        shown = f"{'all rows' if self.all_rows else 'one row'} per match"
        return f"{head}, {shown}, skip {self.skip}{f' {rows}' if rows else ''}{measures} where {defined}"

    def operator_name(self) -> str:
        return f"match{keys_text(' per', self.partition, self.input.schema)}"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> PartitionFacts:
        return PartitionFacts(
            (derived.insert_only(self.input),),
            derived.ttl_ms(self),
            derived.arrival_order(self.input, self.order),
        )

    def drops_late(self, facts: OperatorFacts) -> bool:
        return True

    def _value_text(self, expression: Expression, values: Sequence[Value]) -> str:
        source = self.input.schema.names
        return renamed_text(expression, lambda index: values[index].words(self.variables, source))

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        """All columns take part, since they break ties. Variable names take part too, since CLASSIFIER
        returns them.
        """
        below, columns = inputs[0], inputs[0].columns

        # values first: the condition's columns are positions in them
        def defined(one: Definition) -> str:
            values = tuple(value.digest(columns, texts) for value in one.values)
            return hash_parts(str(one.variable), texts.expression(one.condition, values))

        order = (texts.sort(key, columns) for key in self.order)
        skip = (str(self.skip), *(str(number) for number in sorted(self.skip_rows)), str(self.within_us))
        partition = (columns[key] for key in self.partition)
        head = ("matches", below.rows, str(self.pattern), *map(defined, self.definitions), "how", *skip)
        rows = hash_parts(*head, "per", *partition, "by", *order, "ties", *texts.ties(columns))
        rows = hash_parts("all rows", rows) if self.all_rows else rows
        carried = range(len(columns)) if self.all_rows else self.partition
        values = tuple(value.digest(columns, texts) for value in self.values)
        measures = (hash_parts("measure", rows, texts.expression(one, values)) for one in self.measures)
        return Digest(rows, (*(hash_parts("matched", rows, columns[i]) for i in carried), *measures))

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        # ONE ROW PER MATCH begins with the partition's columns
        positions = {key: i for i, key in enumerate(self.partition)}
        return inputs[0] if self.all_rows else move_keys(inputs[0], positions)

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return (by_keys(self.partition),)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        """Columns of conditions and measures are positions in ``values``; those of values and of the order
        are positions in the input.
        """
        return self._changed(
            order=tuple(key.map(rewrite) for key in self.order),
            definitions=tuple(one.map(rewrite) for one in self.definitions),
            values=tuple(value.map(rewrite) for value in self.values),
            measures=tuple(rewrite(measure) for measure in self.measures),
        )

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        # a filter on PARTITION BY drops whole partitions; any other row may be part of a match
        return ({key: key for key in self.partition} if self.all_rows else dict(enumerate(self.partition)),)

    def state_bound(self, facts: StateFacts) -> StateBound:
        """WITHIN discards a partial match in time. Without it, a partial match may wait for its next row for
        ever.
        """
        keeps = "rows until the watermark passes them, and those of unfinished matches"
        names = ", ".join(self.input.schema[key].name for key in self.partition)
        # MATCH_NUMBER() counts for ever
        if self.counts and self.partition:
            why = f"each distinct ({names}) keeps the number of its matches for ever"
            return self._grows(facts, f"{keeps}, and a number per partition", why)
        # PREV(A.x, n) may read rows before the match
        if self.history and self.partition:
            earlier = f"its last {self.history} rows"
            why = f"each distinct ({names}) keeps {earlier} for ever"
            return self._grows(facts, f"{keeps}, and of each partition {earlier}", why)
        # without WITHIN a partial match has no end
        if self.within_us is None:
            why = "an unfinished match may wait for its next row for ever; add WITHIN INTERVAL .."
            return self._grows(facts, keeps, why)
        return StateBound(keeps)

    def state_ttl_ms(self, facts: StateFacts) -> int:
        # the cases in which state_bound says for ever
        grows = self.counts or self.history or self.within_us is None
        return facts.default_ttl_ms if self.partition and grows else 0

    def refuse_updates(self, port: int) -> PenstockError | None:
        return PenstockError(
            "SQL-1316",
            "MATCH_RECOGNIZE needs an append-only input, but its input retracts rows: a match would "
            "be retracted with them",
            span=self.span,
            hint="match over the rows before they are aggregated, or over windows: GROUP BY "
            "window_start, window_end gives each row once",
            sqlstate="0A000",
        )
