"""BlockHints: the hints of one SELECT for the tables of its FROM. A hint that no plan node uses
is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.catalog.connectors.common_options import SCAN_PARALLELISM
from penstock.catalog.connectors.database import LOOKUP_HINT_OPTIONS, LOOKUP_OPTIONS
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.settings import parse_duration_ms
from penstock.planner.binder.subtask_hints import CLAUSES, SubtaskHints
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.parser.hints import WITHOUT_EFFECT, SelectHint
from penstock.planner.parser.syntax_nodes import AsOf, OptionEntry, TableArgument, WindowTableFunction

Names = Sequence[tuple[str, str]]
"""What a hint may call the tables of a FROM, each with the visible name."""


@dataclass
class BlockHints:
    """Hints by table name in lower case.

    ``lifetimes``: state TTL in milliseconds, 0 for no expiry. ``copied``: the tables to broadcast.
    ``lookups``: lookup options of a table.

    ``unused``: the spans of hints that no plan node has used yet, by hint and table. ``only``: the single
    table of a FROM without joins. ``notes``: what is said of hints that change nothing. ``subtasks``: how
    many subtasks its operators have.
    """

    lifetimes: dict[str, int] = field(default_factory=dict)
    copied: set[str] = field(default_factory=set)
    lookups: dict[str, dict[str, str]] = field(default_factory=dict)
    unused: dict[tuple[str, str], Span] = field(default_factory=dict)
    only: str | None = None
    notes: list[str] = field(default_factory=list)
    subtasks: SubtaskHints = field(default_factory=SubtaskHints)

    @classmethod
    def of(cls, tree: exp.Expr) -> BlockHints:
        """Return the hints of a SELECT. Raises SQL-1602 for a name that is no table of its FROM, and for a
        malformed duration.
        """
        from_ = tree.args.get("from_")
        block = cls(only=None if from_ is None or tree.args.get("joins") else table_name(from_.this))
        hints: Sequence[SelectHint] = tree.meta.get("hints", ())
        # the aliases of FROM a JOIN b AS c: a, c
        names = list(_names(tree)) if hints else []
        for hint in hints:
            if hint.name == "BACKFILL":  # of the whole statement: see ``history_clause``
                continue
            # SHUFFLE_HASH(t), REPARTITION(3): they change no row, and there is nothing that they could steer
            if hint.name in WITHOUT_EFFECT:
                block.notes.append(f"the hint {hint.name} has no effect: {WITHOUT_EFFECT[hint.name]}")
                continue
            # LOOKUP('table' = 't', 'async' = 'true', ..)
            if hint.name == "LOOKUP":
                block._look_up(hint, names)
                continue
            if hint.name == "PARALLELISM":
                for option in hint.options:
                    _have_subtasks(tree, option, block.subtasks)
                continue
            # STATE_TTL('t' = '1 h', ..)
            for option in hint.options:
                name = _known(option.key, option.key_span, names, hint)
                block.lifetimes[name] = _duration(option.value, option.value_span)
                block.unused["STATE_TTL", name] = option.key_span
            # BROADCAST(t)
            for written, span in hint.names:
                name = _known(written, span, names, hint)
                block.copied.add(name)
                block.unused["BROADCAST", name] = span
        return block

    def _look_up(self, hint: SelectHint, names: Names) -> None:
        """Record the options of a LOOKUP hint. Raises SQL-1602 for an unknown table or option, SQL-15xx for a
        value.
        """
        hinted = {option.key.lower(): option for option in hint.options}
        # LOOKUP('async' = 'true')
        if "table" not in hinted:
            usage = "write LOOKUP('table' = 't', 'async' = 'true', ..)"
            raise PenstockError(
                "SQL-1602", "LOOKUP names no table", span=hint.span, hint=usage, sqlstate="42601"
            )
        name = _known(hinted["table"].value, hinted["table"].value_span, names, hint)
        options = {}
        for key, option in hinted.items():
            if key == "table":
                continue
            declared = LOOKUP_HINT_OPTIONS.get(key)
            if declared is None:
                near = did_you_mean(key, ["table", *LOOKUP_HINT_OPTIONS], others=True)
                raise PenstockError(
                    "SQL-1602",
                    f"LOOKUP has no option '{option.key}'",
                    span=option.key_span,
                    hint=near,
                    sqlstate="42601",
                )
            next(known for known in LOOKUP_OPTIONS if known.key == declared).parse(
                key, option.value, option.value_span
            )
            options[declared] = option.value
        self.lookups[name] = options
        self.unused["LOOKUP", name] = hint.span

    def on_join(
        self, plan: LogicalPlan, below: LogicalPlan, left: str | None, right: str | None
    ) -> LogicalPlan:
        """Return a join, possibly under a projection, with the hints of its sides applied. A side is ``None``
        unless it is a single table. ``below`` is the plan of the left side.
        """
        return self._on_sides(self.subtasks.on_join(plan, below, right), left, right)

    def _on_sides(self, plan: LogicalPlan, left: str | None, right: str | None) -> LogicalPlan:
        # a SELECT without hints keeps its very plan
        if not self.lifetimes and not self.copied and not self.lookups:
            return plan
        # The projection drops computed keys; the join is beneath it.
        if isinstance(plan, Project):
            inner = self._on_sides(plan.input, left, right)
            return plan if inner is plan.input else replace(plan, input=inner)
        # Lookup options replace those of the table, in this query only.
        if isinstance(plan, LookupJoin) and right is not None and right.lower() in self.lookups:
            self.unused.pop(("LOOKUP", right.lower()), None)
            table = plan.scan.table
            hinted = replace(table, options={**table.options, **self.lookups[right.lower()]})
            return replace(plan, scan=replace(plan.scan, table=hinted))
        if not isinstance(plan, BinaryJoin):
            return plan
        # _lifetime and _copies also mark the hint as used
        ttl = (self._lifetime(left), self._lifetime(right))
        # BROADCAST of both sides copies the right one.
        copied = next((port for port, name in ((1, right), (0, left)) if self._copies(name)), None)
        return replace(plan, ttl_ms=None if ttl == (None, None) else ttl, copied=copied)

    def on_block(self, plan: LogicalPlan, source: LogicalPlan) -> LogicalPlan:
        """Return the plan of a SELECT over one table, with the table's state TTL in its aggregates and OVER
        nodes.
        """
        # below source is another query, or the table itself: its state is not this SELECT's
        if self.only is None or self.only.lower() not in self.lifetimes or plan is source:
            return plan
        # Every stateful node between the table and the SELECT's output
        inputs = tuple(self.on_block(child, source) for child in plan.inputs)
        plan = (
            plan
            if all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
            else plan.with_inputs(inputs)
        )
        return (
            replace(plan, ttl_ms=self._lifetime(self.only))
            if isinstance(plan, Aggregate | Over | PartitionTop)
            else plan
        )

    def on_distinct(self) -> int | None:
        """Return the state TTL of DISTINCT in milliseconds, ``None`` without a hint."""
        return self._lifetime(self.only)

    def _lifetime(self, name: str | None) -> int | None:
        if name is None or name.lower() not in self.lifetimes:
            return None
        self.unused.pop(("STATE_TTL", name.lower()), None)
        return self.lifetimes[name.lower()]

    def _copies(self, name: str | None) -> bool:
        if name is None or name.lower() not in self.copied:
            return False
        self.unused.pop(("BROADCAST", name.lower()), None)
        return True

    def check_used(self) -> None:
        """Note BROADCAST and LOOKUP hints that no plan node has used: they change no row. Refuse such a
        STATE_TTL, without which state would stay for ever: SQL-1602.
        """
        self.notes += self.subtasks.notes()
        for (hint, name), span in self.unused.items():
            if hint == "BROADCAST":
                why = (
                    "it names a table that is joined by JOIN with another: the right side, or the first "
                    "table of FROM"
                )
                self.notes.append(f'the hint BROADCAST of "{name}" has no effect: {why}')
            elif hint == "LOOKUP":
                why = "it names a table of a database that is joined FOR SYSTEM_TIME AS OF a processing time"
                self.notes.append(f'the hint LOOKUP of "{name}" has no effect: {why}')
            else:
                instead = (
                    "it is for sides of joins, groups, rows of DISTINCT and partitions of OVER; windows "
                    "are freed by the watermark, MATCH_RECOGNIZE uses 'table.exec.state.ttl', and ORDER BY "
                    ".. LIMIT keeps every row that may become one of the first"
                )
                raise PenstockError(
                    "SQL-1602",
                    f'{hint} of "{name}" has no effect in this SELECT',
                    span=span,
                    hint=instead,
                    sqlstate="0A000",
                )


def _have_subtasks(tree: exp.Expr, option: OptionEntry, hints: SubtaskHints) -> None:
    """Apply one entry of PARALLELISM: a number for a table of FROM, a clause, or without a key the SELECT.

    A table, also that of a window function, gets the option ``scan.parallelism``, as its own hint OPTIONS
    does. SQL-1602 for a name that is neither a table there nor a clause.
    """
    tables = [table for reference in _references(tree) for table in _tables_of(reference)]
    name = " ".join(option.key.lower().split())
    found = [table for table, names in tables if name in names]
    if not found:
        joined = {table_name(join.this): join for join in tree.args.get("joins") or []}
        joins = {f"JOIN {alias}" for alias in joined if alias}
        if name and name not in {*CLAUSES, *map(str.lower, joins)}:
            raise _no_operator(tree, option, {known for _, names in tables for known in names} | joins)
        hints.add(name, option)
        return
    for table in found:
        others = [known for known in table.meta.get("options", ()) if known.key != SCAN_PARALLELISM]
        table.meta["options"] = (*others, replace(option, key=SCAN_PARALLELISM))


def _no_operator(tree: exp.Expr, option: OptionEntry, known: set[str]) -> PenstockError:
    queries = {(table_name(reference) or "").lower() for reference in _references(tree)}
    near = (
        "it is a query: write the hint behind its SELECT"
        if option.key.lower() in queries
        else did_you_mean(option.key, [*sorted(known), *(clause.upper() for clause in CLAUSES)], others=True)
    )
    return PenstockError(
        "SQL-1602",
        f'PARALLELISM names "{option.key}", which is neither a table of this FROM nor one of its clauses',
        span=option.key_span,
        hint=near,
        sqlstate="0A000",
    )


def _tables_of(reference: exp.Expr) -> Iterator[tuple[exp.Table, set[str]]]:
    """Yield the table of a reference with the names that a hint may call it by: the alias and its own."""
    inner = reference.this if isinstance(reference, AsOf) else reference
    names = {(table_name(reference) or "").lower()}
    # TUMBLE(TABLE t, ..) AS w
    if isinstance(inner, WindowTableFunction):
        inner = next((a.this for a in inner.find_all(TableArgument)), inner)
    if isinstance(inner, exp.Table):
        yield (
            inner,
            {*names, (table_name(inner) or "").lower(), inner.this.name.rpartition(".")[2].lower()} - {""},
        )


def table_name(tree: exp.Expr) -> str | None:
    """Return the visible name of a table reference: its alias, else the last part of its name."""
    # JOIN t FOR SYSTEM_TIME AS OF ..
    if isinstance(tree, AsOf):
        tree = tree.this
    alias = tree.args.get("alias")
    if alias is not None:
        # FROM orders AS o: a hint says o
        return str(alias.this.name)
    return tree.this.name.rpartition(".")[2] if isinstance(tree, exp.Table) else None


def _names(tree: exp.Expr) -> Iterator[tuple[str, str]]:
    """Yield what a hint may call each table of FROM, with its visible name: the alias, and the own name."""
    for reference in _references(tree):
        name = table_name(reference)
        if name is None:
            continue
        yield name, name
        table = reference.this if isinstance(reference, AsOf) else reference
        if isinstance(table, exp.Table):
            yield table.this.name.rpartition(".")[2], name


def _references(tree: exp.Expr) -> list[exp.Expr]:
    """Return the tables, subqueries and table functions of FROM."""
    from_ = tree.args.get("from_")
    return [] if from_ is None else [from_.this, *(join.this for join in tree.args.get("joins") or [])]


def _known(written: str, span: Span, names: Names, hint: SelectHint) -> str:
    visible = [name for called, name in names if called.lower() == written.lower()]
    # an own name that FROM has under two aliases names neither
    if len(set(visible)) == 1:
        return visible[0].lower()
    near = (
        did_you_mean(written, [name for _, name in names], others=True)
        or "name a table of FROM by its alias, where it has one"
    )
    if hint.name == "STATE_TTL" and not names:
        near = "MATCH_RECOGNIZE uses 'table.exec.state.ttl'; " + near
    raise PenstockError(
        "SQL-1602",
        f'{hint.name} names "{written}", which is no table of this FROM',
        span=span,
        hint=near,
        sqlstate="42P01",
    )


def _duration(text: str, span: Span) -> int:
    duration = parse_duration_ms(text)
    if duration is None:
        hint = "it takes a duration such as '30 min', '12 h' or '1 d'; 0 is for ever"
        raise PenstockError(
            "SQL-1602", f"'{text}' is no valid TTL of state", span=span, hint=hint, sqlstate="22023"
        )
    return duration
