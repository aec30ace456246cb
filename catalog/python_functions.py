"""Functions written in Python: their argument and result types, and the functions that a session sees."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from enum import StrEnum
from typing import Any

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Schema
from penstock.catalog.types import DataType

PROGRAM_ERRORS = (Exception, SystemExit)
"""What the program's own code may raise, and what becomes an error of its statement. ``sys.exit()`` in a
function or a module does not end the process, which may be a server with the jobs of others.
"""


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


Decorated = PythonFunction | type
"""What a decorator returns. Type checkers take a decorated class for the class itself."""

# Injected: the catalog itself imports no module by its name.
Importer = Callable[[FunctionEntry, Span | None], PythonFunction]


class PythonFunctions:
    """The Python functions that one session sees by name, compared without case. Sessions of one engine share
    those that are not temporary; a name is of one function in a session. ``changes`` differs after each
    creation and drop.
    """

    def __init__(self, importer: Importer) -> None:
        self._permanent: dict[str, FunctionEntry] = {}
        self._temporary: dict[str, FunctionEntry] = {}
        self._importer = importer
        # Shared by the sessions. A new object each time: two sessions that count at once may count one.
        self._changes = [object()]

    def for_session(self) -> PythonFunctions:
        """Return the same functions for another session, without temporary ones."""
        twin = copy(self)
        twin._temporary = {}
        return twin

    @property
    def changes(self) -> object:
        """What to compare: it differs after a function was created or dropped."""
        return self._changes[0]

    def __contains__(self, name: str) -> bool:
        return self._entry(name.lower()) is not None

    def _entry(self, folded: str) -> FunctionEntry | None:
        return self._temporary.get(folded) or self._permanent.get(folded)

    def find(self, name: str, span: Span | None = None) -> PythonFunction | None:
        """Return the function of that name, importing it when a stored catalog declared it and nobody has
        called it yet; ``None``: no such name.
        """
        entry = self._entry(name.lower())
        if entry is None:
            return None
        # A stored function is imported at its first call: a start does not run the user's modules.
        if entry.function is None:
            entry = replace(entry, function=self._importer(entry, span))
            # The entry now has its function: later calls import nothing.
            self._space(entry)[name.lower()] = entry
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
        folded = entry.name.lower()
        if or_replace:
            # OR REPLACE wins over IF NOT EXISTS: the entry is replaced, and no temporary one hides it.
            self._temporary.pop(folded, None)
            self._space(entry)[folded] = entry
            self._changes[0] = object()
            return True
        # setdefault: of two sessions that create one name, one adds it.
        if self._entry(folded) is None and self._space(entry).setdefault(folded, entry) is entry:
            self._changes[0] = object()
            return True
        if if_not_exists:
            return False
        hint = f"write CREATE OR REPLACE FUNCTION {entry.name}, or DROP FUNCTION {entry.name} first"
        raise PenstockError(
            "SQL-1330", f'function "{entry.name}" exists already', span=span, hint=hint, sqlstate="42723"
        )

    def _space(self, entry: FunctionEntry) -> dict[str, FunctionEntry]:
        return self._temporary if entry.temporary else self._permanent

    def drop(self, name: str, if_exists: bool = False, span: Span | None = None) -> bool:
        """Remove an entry and return whether there was one; raise SQL-1331 when there is none."""
        # Plans have the function itself: a running job is not affected.
        for space in (self._temporary, self._permanent):
            if space.pop(name.lower(), None) is not None:
                self._changes[0] = object()
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
        return sorted((entry.name for entry in self.entries()), key=str.lower)

    def entries(self) -> list[FunctionEntry]:
        """Return the entries in the order they were created, those of the session last."""
        return list({**self._permanent, **self._temporary}.values())

    def permanent(self) -> list[FunctionEntry]:
        """Return the entries that outlive the session, in the order they were created."""
        return list(self._permanent.values())

    def temporary(self) -> list[FunctionEntry]:
        """Return the entries that end with the session, in the order they were created."""
        return list(self._temporary.values())
