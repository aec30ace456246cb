"""Functions written in Python: their argument and result types, and the session's list of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Schema
from penstock.catalog.types import DataType


class CallMode(StrEnum):
    """How a Python function is called: once per batch with Arrow arrays, or once per row (per group, for
    an aggregate) with Python values.
    """

    ARROW = "arrow"
    ROW = "row"


@dataclass(frozen=True, eq=False)
class PythonFunction:
    """Base of Python functions; ``name`` is what the program called it, ``version`` is part of what the
    state of a job that calls it means.
    """

    name: str
    arg_types: tuple[DataType, ...]
    body: Callable[..., Any]
    mode: CallMode = CallMode.ARROW
    deterministic: bool = True
    # Part of the digest of a query that calls the function.
    version: str = ""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the Python function itself."""
        return self.body(*args, **named)

    @property
    def usage(self) -> str:
        """A call as a user writes it."""
        return f"{self.name}({', '.join(map(str, self.arg_types))})"


@dataclass(frozen=True, eq=False)
class PythonScalar(PythonFunction):
    """One value per row."""

    # Fields of the base have defaults, so this one needs a default too.
    result: DataType = None  # type: ignore[assignment]  # dataclass order: always given


@dataclass(frozen=True, eq=False)
class PythonAggregate(PythonFunction):
    """One value per group, from the columns of the group's rows."""

    result: DataType = None  # type: ignore[assignment]  # dataclass order: always given


@dataclass(frozen=True, eq=False)
class PythonTable(PythonFunction):
    """Any number of rows per row."""

    result: Schema = None  # type: ignore[assignment]  # dataclass order: always given


@dataclass(frozen=True)
class FunctionEntry:
    """A name under which SQL calls a function. ``target`` is ``module.object`` when SQL declared it;
    ``function`` None: not imported yet.
    """

    name: str
    target: str | None = None
    function: PythonFunction | None = None
    temporary: bool = False


# Injected: the catalog itself imports no module by its name.
Importer = Callable[[FunctionEntry, Span | None], PythonFunction]


class PythonFunctions:
    """The Python functions of one session by name, compared without case. ``changes`` counts what was created
    and dropped.
    """

    def __init__(self, importer: Importer) -> None:
        self._entries: dict[str, FunctionEntry] = {}
        self._importer = importer
        self.changes = 0

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._entries

    def find(self, name: str, span: Span | None = None) -> PythonFunction | None:
        """Return the function of that name, importing it when a stored catalog declared it and nobody has
        called it yet; ``None``: no such name.
        """
        entry = self._entries.get(name.lower())
        if entry is None:
            return None
        # A stored function is imported at its first call: a start does not run the user's modules.
        if entry.function is None:
            entry = replace(entry, function=self._importer(entry, span))
            # The entry now has its function: later calls import nothing.
            self._entries[name.lower()] = entry
        return entry.function

    def create(
        self,
        entry: FunctionEntry,
        *,
        or_replace: bool = False,
        if_not_exists: bool = False,
        span: Span | None = None,
    ) -> bool:
        """Add an entry and return whether it was added; raise SQL-1330 when the name is taken."""
        # OR REPLACE wins over IF NOT EXISTS: the entry is replaced.
        if entry.name.lower() in self._entries and not or_replace:
            if if_not_exists:
                return False
            hint = f"write CREATE OR REPLACE FUNCTION {entry.name}, or DROP FUNCTION {entry.name} first"
            raise PenstockError(
                "SQL-1330", f'function "{entry.name}" exists already', span=span, hint=hint, sqlstate="42723"
            )
        self._entries[entry.name.lower()] = entry
        self.changes += 1
        return True

    def drop(self, name: str, if_exists: bool = False, span: Span | None = None) -> bool:
        """Remove an entry and return whether there was one; raise SQL-1331 when there is none."""
        self.changes += 1
        # Plans have the function itself: a running job is not affected.
        if self._entries.pop(name.lower(), None) is not None:
            return True
        if if_exists:
            return False
        hint = (
            did_you_mean(name, self.names())
            or "SHOW FUNCTIONS lists them; functions of the language cannot be dropped"
        )
        raise PenstockError(
            "SQL-1331", f'there is no Python function "{name}"', span=span, hint=hint, sqlstate="42883"
        )

    def names(self) -> list[str]:
        """Return the names in alphabetical order."""
        return [self._entries[name].name for name in sorted(self._entries)]

    def entries(self) -> list[FunctionEntry]:
        """Return the entries in the order they were created."""
        return list(self._entries.values())
