"""Windows of the Table API: TUMBLE, HOP, CUMULATE and SESSION over a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlglot import exp

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.settings import parse_duration_ms
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.relations.tables import bind_source
from penstock.planner.parser.syntax_nodes import (
    Descriptor,
    HostValue,
    IntervalLiteral,
    NamedArgument,
    TableArgument,
    WindowTableFunction,
)
from penstock.planner.table_api.from_clause import FromItems, FromTable
from penstock.planner.table_api.sql_text import Lines, expression_text, indented, name_text, names_text

Length = str | timedelta


@dataclass(frozen=True)
class Window:
    """A windowing function without its table; made by ``tumble``, ``hop``, ``cumulate`` and ``session``."""

    function: str
    time: str
    lengths: tuple[tuple[str, Length], ...]
    partition_by: tuple[str, ...] = ()


def tumble(time: str, size: Length, *, offset: Length | None = None) -> Window:
    """Return tumbling windows: one size, one after the other. ``size`` is a timedelta or text such as ``"10
    minutes"``.
    """
    return Window("TUMBLE", time, _lengths(SIZE=size, OFFSET=offset))


def hop(time: str, slide: Length, size: Length, *, offset: Length | None = None) -> Window:
    """Return hopping windows: one size, a new one every ``slide``."""
    return Window("HOP", time, _lengths(SLIDE=slide, SIZE=size, OFFSET=offset))


def cumulate(time: str, step: Length, size: Length, *, offset: Length | None = None) -> Window:
    """Return cumulative windows: they grow by ``step`` up to ``size`` and then start again."""
    return Window("CUMULATE", time, _lengths(STEP=step, SIZE=size, OFFSET=offset))


def session(time: str, gap: Length, *, partition_by: Sequence[str] = ()) -> Window:
    """Return session windows: they end after ``gap`` without rows, per value of ``partition_by``. It defaults
    to the columns of ``group_by``.
    """
    return Window("SESSION", time, _lengths(GAP=gap), tuple(partition_by))


def _lengths(**lengths: Length | None) -> tuple[tuple[str, Length], ...]:
    return tuple((name, length) for name, length in lengths.items() if length is not None)


def windowed(
    source: FromTable, window: Window, partition_by: Sequence[str], context: BindContext, origin: int
) -> FromTable:
    """Return a table under a windowing function, as a table of FROM."""
    partition = [exp.Identifier(this=column, quoted=True) for column in partition_by]
    # TUMBLE(TABLE t PARTITION BY a, DESCRIPTOR(time), SIZE => ..)
    arguments: list[exp.Expr] = [TableArgument(this=source.tree(0), partition=partition)]
    arguments.append(Descriptor(expressions=[exp.Identifier(this=window.time, quoted=True)]))
    lengths = [NamedArgument(this=name, expression=length_tree(length)) for name, length in window.lengths]
    function = WindowTableFunction(this=window.function, expressions=[*arguments, *lengths])
    items = FromItems(source)
    relation = bind_source(function, items.context(context)).relation
    return FromTable(
        source.name,
        relation,
        _text(source, window, partition_by),
        origin=origin,
        ancestors=items.origins() - {origin},
    )


def _text(source: FromTable, window: Window, partition_by: Sequence[str]) -> Lines:
    table = f" PARTITION BY ({names_text(partition_by)})" if partition_by else ""
    values = [f"{name} => {expression_text(length_tree(length))}" for name, length in window.lengths]
    rest = ", ".join([f"{table}, DESCRIPTOR({name_text(window.time)})", *values])
    # TABLE t on one line, TABLE (query) on several; a name has no alias here
    if len(source.sql) == 1:
        return (f"{window.function}(TABLE {source.sql[0]}{rest})",)
    return (f"{window.function}(", f"  TABLE {source.sql[0]}", *indented(source.sql[1:-1]), f"  ){rest})")


def length_tree(length: Length) -> exp.Expr:
    """Return a duration: a timedelta, or a text as settings or INTERVAL have it."""
    # "10 minutes" is a duration as in settings; another text is that of an INTERVAL: "1 day 2 hours"
    milliseconds = parse_duration_ms(length) if isinstance(length, str) else None
    if isinstance(length, str) and milliseconds is None:
        return IntervalLiteral(this=length)
    node = HostValue()
    node.meta["value"] = length if milliseconds is None else timedelta(milliseconds=milliseconds)
    return node
