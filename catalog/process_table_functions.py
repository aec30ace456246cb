"""Process table functions in Python: functions over whole tables, with state and timers of each partition.

The names are those of Flink's process table functions: table arguments of set or row semantics, ``uid``,
``on_time``.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.python_functions import PythonFunction
from penstock.catalog.schema import Schema
from penstock.catalog.types import DataType


class StateKind(StrEnum):
    """What a state variable holds for each partition: one value, a list of values, or a map."""

    VALUE = "value"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True)
class StateDeclaration:
    """A state variable: the type of its values, and of its keys if it is a map.

    ``ttl_ms``: the time to live of a partition's state after its last write, in milliseconds. 0: for ever.
    None: as the job's setting says.
    """

    kind: StateKind
    type: DataType
    key: DataType | None = None
    ttl_ms: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} of {f'{self.key} to ' if self.key is not None else ''}{self.type}"


@dataclass(frozen=True)
class TableDeclaration:
    """A table argument of a process table function.

    ``set_semantics``: rows of a partition belong together; False: each row by itself, without PARTITION BY.
    ``optional_partition_by``: without PARTITION BY all rows are one partition. ``updates``: the function
    accepts retractions. ``pass_columns_through``: the output has all columns of the input. ``requires_time``:
    a call must have ``on_time``.
    """

    set_semantics: bool = True
    optional_partition_by: bool = False
    updates: bool = False
    pass_columns_through: bool = False
    requires_time: bool = False


@dataclass(frozen=True, eq=False)
class PythonProcessTable(PythonFunction):
    """Rows from the rows of tables; ``body`` is the class, which is instantiated for each subtask.

    ``tables``, ``arguments`` and ``state`` are in the order of their declaration. ``emits_updates``: it
    retracts rows it has emitted. ``has_timers``: the class has a method ``on_timer``. ``defaults``: the
    values of constants that a call may leave out.
    """

    result: Schema = None  # type: ignore[assignment]  # dataclass order: always given
    tables: tuple[tuple[str, TableDeclaration], ...] = ()
    arguments: tuple[tuple[str, DataType], ...] = ()
    state: tuple[tuple[str, StateDeclaration], ...] = ()
    emits_updates: bool = False
    has_timers: bool = False
    defaults: tuple[tuple[str, object], ...] = ()

    @property
    def usage(self) -> str:
        """A call as a user writes it."""
        several = len(self.tables) > 1
        tables = []
        for name, table in self.tables:
            keys = " PARTITION BY k" if table.set_semantics else ""
            tables.append(f"{name} => TABLE {name if several else 't'}{keys}")
        time = ["on_time => DESCRIPTOR(ts)"] if any(table.requires_time for _, table in self.tables) else []
        optional = dict(self.defaults)
        constants = [f"{name} => CAST(.. AS {kind})" for name, kind in self.arguments if name not in optional]
        return f"{self.name}({', '.join([*tables, *constants, *time])})"

    @property
    def passes_columns(self) -> bool:
        """Whether the output begins with all columns of the input, instead of those of PARTITION BY."""
        return any(table.pass_columns_through for _, table in self.tables)

    @property
    def keeps_state(self) -> bool:
        """Whether checkpoints hold anything of the function."""
        return bool(self.state) or self.has_timers
