"""Process table functions of the Table API: ``table.partition_by("k").process("f", threshold=5)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlglot import exp

from penstock.catalog.python_functions import Decorated
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.relations.tables import bind_source
from penstock.planner.parser.syntax_nodes import (
    Descriptor,
    HostValue,
    NamedArgument,
    ProcessTableCall,
    TableArgument,
)
from penstock.planner.table_api.from_clause import FromItems, FromTable, JoinClause
from penstock.planner.table_api.sql_text import Lines, expression_text, indented, name_text, names_text

Processed = TypeVar("Processed")
"""What a processed table is: a Table, whose file imports this one."""


class PartitionedTable(Generic[Processed]):
    """A table with the columns that partition it. ``process`` reads it by a process table function; as an
    argument of another call it is a further table.
    """

    def __init__(
        self,
        source: FromTable,
        keys: Sequence[str],
        context: Callable[[], BindContext],
        make: Callable[[FromTable], Processed],
    ) -> None:
        self._source, self._keys = source, tuple(keys)
        self._context, self._make = context, make

    def process(
        self,
        function: str | Decorated,
        *,
        on_time: str | Sequence[str] | None = None,
        uid: str | None = None,
        **arguments: Any,
    ) -> Processed:
        """Return the rows that a process table function emits for this table, its first one.

        ``arguments`` are its other tables, each a ``partition_by``, and its constants. ``on_time`` names the
        event time: one column, or one for each table. Raises as the call in SQL does.
        """
        name = function if isinstance(function, str) else str(getattr(function, "name", function))
        sources, trees, texts = [self._source], [self._tree(0)], [self._text("")]
        for key, value in arguments.items():
            tree: exp.Expr
            if isinstance(value, PartitionedTable):
                tree = value._tree(len(sources))
                sources.append(value._source)
                texts.append(value._text(f"{name_text(key)} => "))
            else:
                tree = _constant(value)
                texts.append((f"{name_text(key)} => {expression_text(tree)}",))
            trees.append(NamedArgument(this=key, expression=tree))
        if on_time is not None:
            columns = [on_time] if isinstance(on_time, str) else list(on_time)
            named = Descriptor(expressions=[exp.Identifier(this=one, quoted=True) for one in columns])
            trees.append(NamedArgument(this="on_time", expression=named))
            texts.append((f"on_time => DESCRIPTOR({names_text(columns)})",))
        if uid is not None:
            trees.append(NamedArgument(this="uid", expression=_constant(uid)))
            texts.append((f"uid => {expression_text(_constant(uid))}",))
        call = ProcessTableCall(this=exp.Identifier(this=name, quoted=True), expressions=trees)
        # the context knows the tables by their positions, as those of a join
        items = FromItems(sources[0], tuple(JoinClause(one, "CROSS") for one in sources[1:]))
        relation = bind_source(call, items.context(self._context())).relation
        lines = (f"{name_text(name)}(", *indented(_joined(texts)), ")")
        return self._make(FromTable(name, relation, lines, ancestors=items.origins()))

    def _tree(self, position: int) -> exp.Expr:
        keys = [exp.Identifier(this=key, quoted=True) for key in self._keys]
        return TableArgument(this=self._source.tree(position), partition=keys, order=[])

    def _text(self, name: str) -> Lines:
        lines = [f"{name}TABLE {self._source.sql[0]}", *self._source.sql[1:]]
        lines[-1] += f" PARTITION BY ({names_text(self._keys)})" if self._keys else ""
        return tuple(lines)


def _constant(value: Any) -> exp.Expr:
    node = HostValue()
    node.meta["value"] = value
    return node


def _joined(texts: Sequence[Lines]) -> Lines:
    """Return arguments one below the other, with a comma behind all but the last."""
    lines: list[str] = []
    for number, text in enumerate(texts, 1):
        lines += [*text[:-1], f"{text[-1]}{',' if number < len(texts) else ''}"]
    return tuple(lines)
