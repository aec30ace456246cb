"""MATCH_RECOGNIZE: binds its clauses over a relation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import DataType
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.match_navigation import MatchBinder, Variables
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.binder.windows.window_functions import attach_time_attribute, is_time_attribute
from penstock.planner.expressions.nodes import Column, Literal, SortKey
from penstock.planner.expressions.row_pattern import Pattern
from penstock.planner.logical.condition_program import programs_of
from penstock.planner.logical.match_recognize import Definition, MatchRecognize, Rows, SkipTo
from penstock.planner.logical.pattern_nfa import automaton_of
from penstock.planner.parser.row_pattern_parser import parse_pattern
from penstock.planner.parser.syntax_nodes import AfterMatch, RowMatches, consume, span_of

_WHERE = {"past": SkipTo.PAST_LAST_ROW, "next": SkipTo.NEXT_ROW, "first": SkipTo.FIRST, "last": SkipTo.LAST}


def bind_matches(
    tree: RowMatches, context: BindContext, bind_source: Callable[[exp.Expr, BindContext], Any]
) -> Relation:
    """Return MATCH_RECOGNIZE as a relation. Raises SQL-174x for clauses that contradict each other."""
    consume(
        tree,
        "this",
        "partition",
        "order",
        "measures",
        "all_rows",
        "skip",
        "pattern",
        "within",
        "subsets",
        "defines",
        "alias",
    )
    # t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES .. PATTERN (A B+) DEFINE B AS B.x > A.x)
    source = bind_source(tree.this, context)
    return _Clauses(tree, source.relation, source.scope, context).bind()


@dataclass(frozen=True)
class _Clauses:
    """Binds the clauses one by one."""

    tree: RowMatches
    relation: Relation
    scope: Scope
    context: BindContext

    def bind(self) -> Relation:
        """Return the node as a relation."""
        # ORDER BY first: a processing time becomes a stamped column, which the other clauses see
        order = self._order()
        key = order[0].expression
        assert isinstance(key, Column)
        return replace(self, relation=attach_time_attribute(self.relation, key.index))._bind_ordered(
            order, key.type
        )

    def _bind_ordered(self, order: tuple[SortKey, ...], time: DataType) -> Relation:
        # Clauses in the order of SQL: PARTITION BY, PATTERN, SUBSET, DEFINE, MEASURES, SKIP, WITHIN.
        args = self.tree.args
        partition = self._partition()
        pattern = self._pattern()
        variables = self._variables(pattern)
        definitions = self._definitions(variables)
        all_rows = bool(args.get("all_rows"))
        # ONE ROW PER MATCH: measures are FINAL, of the whole match. ALL ROWS: RUNNING, up to the row.
        binder = MatchBinder(
            self.scope, self.context, "MEASURES", variables=variables, ends=not all_rows, time=time
        )
        measures = tuple(binder.bind(node.this) for node in args.get("measures") or [])
        names = tuple(node.args["alias"].name for node in args.get("measures") or [])
        # AFTER MATCH SKIP TO FIRST B names variables, so it comes behind them
        skip, skip_rows = self._skip(variables, pattern)
        plan = MatchRecognize(
            self.relation.plan,
            partition,
            order,
            pattern,
            variables.names,
            definitions,
            tuple(binder.values),
            measures,
            names,
            all_rows,
            skip,
            skip_rows,
            self._within(),
            span_of(self.tree),
        )
        return self._shown(plan)

    def _shown(self, plan: MatchRecognize) -> Relation:
        """Return the node with the relation's column names. No name may occur twice."""
        # ALL ROWS PER MATCH outputs the input columns, ONE ROW PER MATCH the partition only; measures follow.
        columns = range(len(self.relation.fields)) if plan.all_rows else plan.partition
        older = tuple(replace(self.relation.fields[i], role=None) for i in columns)
        seen = {f.name.lower() for f in older}
        for node in self.tree.args.get("measures") or []:
            name = node.args["alias"].name
            if name.lower() in seen:
                message = f'column name "{name}" is given twice'
                raise PenstockError(
                    "SQL-1045",
                    message,
                    span=span_of(node),
                    hint="give the measure another name",
                    sqlstate="42701",
                )
            seen.add(name.lower())
        fields = older + plan.schema.fields[len(older) :]
        # ONE ROW PER MATCH without PARTITION BY and MEASURES
        if not fields:
            hint = "add MEASURES FIRST(A.ts) AS start_time, or PARTITION BY"
            raise PenstockError(
                "SQL-1743", "the matches have no column", span=span_of(self.tree), hint=hint, sqlstate="42601"
            )
        return Relation(plan, fields)

    def _partition(self) -> tuple[int, ...]:
        binder = ExpressionBinder(self.scope, self.context, "PARTITION BY")
        keys = []
        for node in self.tree.args.get("partition") or []:
            key = binder.bind(node)
            if not isinstance(key, Column):
                hint = "compute it in a subquery of FROM, give it a name, and use that name here"
                raise PenstockError(
                    "SQL-1601",
                    "PARTITION BY takes columns here",
                    span=span_of(node),
                    hint=hint,
                    sqlstate="0A000",
                )
            if not is_orderable(key.type):
                raise PenstockError(
                    "SQL-1103",
                    f"PARTITION BY cannot compare {key.type}",
                    span=span_of(node),
                    sqlstate="42804",
                )
            keys.append(key.index)
        # PARTITION BY k, k
        return tuple(dict.fromkeys(keys))

    def _order(self) -> tuple[SortKey, ...]:
        """Return the sort keys. The first must be an ascending time attribute, because the watermark makes
        rows final in that order. Raises SQL-1744.
        """
        nodes = self.tree.args.get("order") or []
        times = [f.name for f in self.relation.fields if f.is_time]
        hint = (
            f"ORDER BY {times[0]}"
            if times
            else "declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND in CREATE TABLE, and ORDER BY ts"
        )
        # MATCH_RECOGNIZE (PATTERN ..) without ORDER BY
        if not nodes:
            message = "MATCH_RECOGNIZE needs an ORDER BY"
            raise PenstockError("SQL-1744", message, span=span_of(self.tree), hint=hint, sqlstate="42601")
        binder = ExpressionBinder(self.scope, self.context, "ORDER BY")
        keys = []
        for node in nodes:
            consume(node, "this", "desc", "nulls_first")
            key = binder.bind(node.this)
            if not is_orderable(key.type):
                raise PenstockError(
                    "SQL-1103", f"ORDER BY cannot compare {key.type}", span=span_of(node), sqlstate="42804"
                )
            keys.append(SortKey(key, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))))
        first = keys[0].expression
        if (
            not isinstance(first, Column)
            or not is_time_attribute(self.relation.fields[first.index], self.relation)
            or keys[0].descending
        ):
            message = (
                "the ORDER BY of MATCH_RECOGNIZE begins with a time attribute, ascending: rows are "
                "final when time has passed them"
            )
            raise PenstockError("SQL-1744", message, span=span_of(nodes[0]), hint=hint, sqlstate="42804")
        return tuple(keys)

    def _pattern(self) -> Pattern:
        text = self.tree.args["pattern"]
        span = span_of(text)
        # the pattern has a grammar of its own: (A B*? | C{2,}) {- D -}
        return parse_pattern(str(text.this), span.start if span is not None else 0)

    def _variables(self, pattern: Pattern) -> Variables:
        """Return the variables of the pattern and its subsets."""
        names = tuple(dict.fromkeys(pattern.names()))
        # Each variable covers itself; SUBSET s = (a, b) covers the union.
        known: dict[str, Rows] = {name.lower(): frozenset({number}) for number, name in enumerate(names)}
        written = list(names)
        for node in self.tree.args.get("subsets") or []:
            # SUBSET A = (B, C) of a variable A
            if node.this.name.lower() in known:
                message = f'"{node.this.name}" is a variable already'
                raise PenstockError(
                    "SQL-1742",
                    message,
                    span=span_of(node.this),
                    hint="give the subset another name",
                    sqlstate="42712",
                )
            members = Variables(names, known, names)
            known[node.this.name.lower()] = frozenset[int]().union(
                *(members.of(member) for member in node.expressions)
            )
            written.append(node.this.name)
        return Variables(names, known, tuple(written))

    def _definitions(self, variables: Variables) -> tuple[Definition, ...]:
        # DEFINE A AS ..: only variables of the pattern, not subsets
        numbers = {name.lower(): number for number, name in enumerate(variables.names)}
        definitions: dict[int, Definition] = {}
        for node in self.tree.args["defines"]:
            name = node.args["alias"]
            number = numbers.get(name.name.lower())
            if number is None:
                hint = did_you_mean(name.name, variables.names, others=True)
                raise PenstockError(
                    "SQL-1742",
                    f'the pattern has no variable "{name.name}"',
                    span=span_of(name),
                    hint=hint,
                    sqlstate="42703",
                )
            # DEFINE A AS .., A AS ..
            if number in definitions:
                message = f'variable "{name.name}" is defined twice'
                raise PenstockError(
                    "SQL-1742",
                    message,
                    span=span_of(name),
                    hint="join both conditions with AND",
                    sqlstate="42712",
                )
            binder = MatchBinder(self.scope, self.context, "DEFINE", variables=variables, defining=number)
            definitions[number] = Definition(number, binder.condition(node.this), tuple(binder.values))
            # Compile the condition now, so that an unsupported one is an error at planning.
            programs_of((definitions[number],))
        # A variable without DEFINE matches every row.
        return tuple(definitions[number] for number in sorted(definitions))

    def _skip(self, variables: Variables, pattern: Pattern) -> tuple[SkipTo, Rows]:
        node = self.tree.args.get("skip")
        if node is None:
            return SkipTo.PAST_LAST_ROW, frozenset()
        assert isinstance(node, AfterMatch)
        skip = _WHERE[node.args["kind"]]
        # AFTER MATCH SKIP PAST LAST ROW, or TO NEXT ROW
        if node.this is None:
            return skip, frozenset()
        # AFTER MATCH SKIP TO LAST B
        rows = variables.of(node.this)
        # SKIP TO FIRST a must advance, or the match would repeat for ever.
        if skip is SkipTo.FIRST and self._begins(rows, variables.names, pattern):
            message = f"every match begins with {node.this.name}, so the same match would be found again"
            raise PenstockError(
                "SQL-1745",
                message,
                span=span_of(node),
                hint="write AFTER MATCH SKIP TO NEXT ROW, or PAST LAST ROW",
                sqlstate="42601",
            )
        return skip, rows

    @staticmethod
    def _begins(rows: Rows, names: Sequence[str], pattern: Pattern) -> bool:
        automaton = automaton_of(pattern, names)
        # The last state of the automaton is the start; its targets are the rows that can begin a match.
        firsts = automaton.targets[automaton.offsets[-2] :]
        return all(automaton.variables[position] in rows for position in firsts)

    def _within(self) -> int | None:
        node = self.tree.args.get("within")
        if node is None:
            return None
        # PATTERN (..) WITHIN INTERVAL '10' MINUTE
        bound = ExpressionBinder(Scope(), self.context, "WITHIN").bind(node)
        value = bound.value if isinstance(bound, Literal) else None
        if not isinstance(value, timedelta) or value <= timedelta(0):
            message = "WITHIN takes an interval of days or less, longer than nothing"
            raise PenstockError(
                "SQL-1705",
                message,
                span=span_of(node),
                hint="write WITHIN INTERVAL '10' MINUTE",
                sqlstate="22023",
            )
        return value // timedelta(microseconds=1)
