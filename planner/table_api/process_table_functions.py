"""The decorator of process table functions, and what their classes declare: tables and state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.catalog.coercion import implicit_cast
from penstock.catalog.errors import PenstockError
from penstock.catalog.process_table_functions import (
    PythonProcessTable,
    StateDeclaration,
    StateKind,
    TableDeclaration,
)
from penstock.catalog.python_functions import CallMode
from penstock.catalog.schema import Field, Schema
from penstock.catalog.settings import parse_duration_ms
from penstock.catalog.types import STRING
from penstock.planner.binder.expressions.host_values import host_literal
from penstock.planner.parser.type_parser import parse_type

_RESERVED = ("on_time", "uid")
"""Arguments that every process table function has."""

# names that a call's context has itself
_TAKEN = frozenset({"process", "on_timer"})


def table_input(
    *,
    semantics: str = "set",
    optional_partition_by: bool = False,
    updates: bool = False,
    pass_columns_through: bool = False,
    requires_time: bool = False,
) -> TableDeclaration:
    """Declare a table argument in the class of a process table function; without one it is called ``input``.

    ``semantics`` "set": a call writes PARTITION BY, and rows of a partition come to one place. "row": each
    row by itself, without state. ``optional_partition_by``: a call may leave PARTITION BY out.
    ``updates``: retracted rows are accepted. ``pass_columns_through``: the output has all columns of the
    table. ``requires_time``: a call must have ``on_time``. Raises SQL-1332.
    """
    if semantics not in ("set", "row"):
        raise _invalid(f'a table has no semantics "{semantics}"', 'write semantics="set" or "row"')
    if semantics == "row" and optional_partition_by:
        raise _invalid("a table of row semantics has no PARTITION BY", "leave optional_partition_by out")
    if updates and pass_columns_through:
        hint = "leave one of them out; a function emits the columns it wants"
        raise _invalid("columns pass through for tables that are not updated only", hint)
    return TableDeclaration(
        semantics == "set", optional_partition_by, updates, pass_columns_through, requires_time
    )


def value_state(kind: str, *, ttl: str | None = None) -> StateDeclaration:
    """Declare one value of a SQL type for each partition; NULL while there is none.

    ``ttl`` is a duration such as ``"1 h"``: so long after its last write a value is forgotten. ``"0 s"`` is
    for ever. By default the setting ``table.exec.state.ttl`` counts.
    """
    return StateDeclaration(StateKind.VALUE, parse_type(kind), ttl_ms=_duration(ttl))


def list_state(kind: str, *, ttl: str | None = None) -> StateDeclaration:
    """Declare a list of values of a SQL type for each partition; ``ttl`` as in ``value_state``."""
    return StateDeclaration(StateKind.LIST, parse_type(kind), ttl_ms=_duration(ttl))


def map_state(key: str, kind: str, *, ttl: str | None = None) -> StateDeclaration:
    """Declare a map from keys to values for each partition. ``ttl``, as in ``value_state``, is that of the
    whole map.
    """
    return StateDeclaration(StateKind.MAP, parse_type(kind), parse_type(key), _duration(ttl))


def ptf(
    columns: Mapping[str, str],
    *,
    arguments: Mapping[str, str] | None = None,
    defaults: Mapping[str, object] | None = None,
    mode: str = "arrow",
    emits_updates: bool = False,
    deterministic: bool = True,
    name: str | None = None,
    version: str = "",
) -> Callable[[type], PythonProcessTable]:
    """Return the decorator that makes a class a process table function, called as
    ``FROM f(input => TABLE t PARTITION BY k)``.

    ``columns`` are the names and SQL types of its output, ``arguments`` those of its constants. A constant
    that ``defaults`` has a value for may be left out of a call; None is NULL. The class
    has a method ``process``, and ``on_timer`` if it sets timers. ``mode`` "arrow": both are called once for
    many partitions. ``mode`` "row": once for each row or timer. Raises SQL-1204 for an unknown type, SQL-1332
    for another fault of the declaration.
    """
    if mode not in tuple(CallMode):
        hint = 'mode="arrow" is called for many partitions at once, mode="row" for each row'
        raise _invalid(f'a Python function has no mode "{mode}"', hint)
    constants = tuple((key, parse_type(kind)) for key, kind in (arguments or {}).items())
    # a mapping keeps the order of its columns, which is that of the function's output
    schema = Schema(tuple(Field(key, parse_type(kind)) for key, kind in columns.items()))

    def decorate(body: type) -> PythonProcessTable:
        if not isinstance(body, type):
            raise _invalid("@penstock.ptf decorates a class", "write class F: with a method process")
        declared = vars(body)
        tables = tuple((k, v) for k, v in declared.items() if isinstance(v, TableDeclaration))
        state = tuple((k, v) for k, v in declared.items() if isinstance(v, StateDeclaration))
        function = PythonProcessTable(
            name or body.__name__,
            (),
            body,
            CallMode(mode),
            deterministic,
            version,
            schema,
            tables or (("input", TableDeclaration()),),
            constants,
            state,
            emits_updates,
            callable(getattr(body, "on_timer", None)),
            tuple((defaults or {}).items()),
        )
        _check(function)
        return function

    return decorate


def _check(function: PythonProcessTable) -> None:
    if not callable(getattr(function.body, "process", None)):
        hint = "write def process(self, ctx), or process(self, ctx, row) with mode='row'"
        raise _invalid(f"class {function.name} has no method process", hint)
    names = [name for name, _ in (*function.tables, *function.arguments, *function.state)]
    repeated = _repeated([*names, *_RESERVED, *_TAKEN])
    if repeated is not None:
        raise _invalid(
            f'{function.name} declares the name "{repeated}" twice, or it is reserved', "rename it"
        )
    if _repeated(function.result.names) is not None:
        raise _invalid(f"{function.name} has two columns of one name", "rename one")
    _check_defaults(function)
    rows_only = [table for _, table in function.tables if not table.set_semantics]
    if rows_only and (function.keeps_state or len(function.tables) > 1):
        hint = 'declare it with semantics="set", and write PARTITION BY'
        raise _invalid("a table of row semantics goes with no state, timer or other table", hint)
    if function.passes_columns and (len(function.tables) > 1 or function.has_timers):
        hint = "leave pass_columns_through out, and emit the columns you want"
        raise _invalid("columns pass through for one table and without timers only", hint)


def _check_defaults(function: PythonProcessTable) -> None:
    kinds = dict(function.arguments)
    for name, value in function.defaults:
        if name not in kinds:
            raise _invalid(f'{function.name} has a default for "{name}", which is no argument', "declare it")
        literal = host_literal(value)
        # a text would be cast by the query, row after row
        text = literal is not None and literal.type == STRING and kinds[name] != STRING
        if literal is None or text or not implicit_cast(literal.type, kinds[name]):
            hint = f"give a value of {kinds[name]}, or None"
            raise _invalid(f'{function.name}: the default of "{name}" is no {kinds[name]}', hint)


def _repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return None


def _duration(text: str | None) -> int | None:
    if text is None:
        return None
    duration = parse_duration_ms(text)
    if duration is None:
        raise _invalid(f"'{text}' is no duration", "write ttl='1 h', '30 min' or '10 s'")
    return duration


def _invalid(message: str, hint: str) -> PenstockError:
    return PenstockError("SQL-1332", message, hint=hint)
