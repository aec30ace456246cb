"""Sources and sinks written in Python: what the decorators ``penstock.source`` and ``penstock.sink`` make,
and the program's own ones by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, overload

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass

Reader = Callable[..., Any]
Splits = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class PythonSource:
    """A source: ``read(split, position, options)`` yields batches with the position after each.
    ``splits(options)`` lists the splits; without it there is one. ``discover_every_ms``: how often it is
    asked again.
    """

    name: str
    read: Reader
    splits: Splits | None = None
    discover_every_ms: int | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the Python function itself."""
        return self.read(*args, **named)

    @property
    def module(self) -> str:
        """The module that defines it."""
        return self.read.__module__


@dataclass(frozen=True, eq=False)
class PythonSink:
    """A sink: ``make(options, schema)`` returns the target of one subtask, with ``last_committed`` and
    ``commit``.
    """

    name: str
    make: Callable[..., Any]

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Make a target."""
        return self.make(*args, **named)

    @property
    def module(self) -> str:
        """The module that defines it."""
        return self.make.__module__


PythonConnector = PythonSource | PythonSink


@overload
def source(read: Reader) -> PythonSource: ...
@overload
def source(
    *, name: str | None = None, splits: Splits | None = None, discover_every_ms: int | None = None
) -> Callable[[Reader], PythonSource]: ...
def source(
    read: Reader | None = None,
    *,
    name: str | None = None,
    splits: Splits | None = None,
    discover_every_ms: int | None = None,
) -> PythonSource | Callable[[Reader], PythonSource]:
    """Make a generator function a source of SQL: ``@penstock.source`` or ``@penstock.source(splits=..)``.

    ``read(split, position)``, or with ``options`` as a third parameter, yields ``(batch, position)``: an
    Arrow batch, and a JSON-ready value. Called with a position it resumes behind it, with the same rows in
    the same order. ``position`` is None at the start. It may block. Raises DAT-5605 for another function.
    """

    def decorate(body: Reader) -> PythonSource:
        _check_parameters(body, (2, 3), "read(split, position) or read(split, position, options)")
        if splits is not None:
            _check_parameters(splits, (0, 1), "splits() or splits(options)")
        return PythonSource(name or body.__name__, body, splits, discover_every_ms)

    return decorate if read is None else decorate(read)


@overload
def sink(make: Callable[..., Any]) -> PythonSink: ...
@overload
def sink(*, name: str | None = None) -> Callable[[Callable[..., Any]], PythonSink]: ...
def sink(
    make: Callable[..., Any] | None = None, *, name: str | None = None
) -> PythonSink | Callable[[Callable[..., Any]], PythonSink]:
    """Make a class a sink of SQL: ``@penstock.sink``.

    One object a subtask, made with ``(options, schema)``. ``commit(writer, epoch, batches)`` stores the rows
    and the epoch of the writer, both or neither. ``last_committed(writer)`` returns that epoch, 0 at first.
    ``fence(writers)``, ``retire(writer)`` and ``close()`` are optional. Raises DAT-5605 for another class.
    """

    def decorate(body: Callable[..., Any]) -> PythonSink:
        missing = [method for method in ("last_committed", "commit") if not hasattr(body, method)]
        if inspect.isclass(body) and missing:
            raise _unsuitable(body, f"has no method {missing[0]}", "a sink has last_committed and commit")
        return PythonSink(name or body.__name__, body)

    return decorate if make is None else decorate(make)


def arguments_of(body: Callable[..., Any], *given: Any) -> tuple[Any, ...]:
    """Return as many of the arguments as a function takes."""
    return given[: len(_positional(body))]


def _positional(body: Callable[..., Any]) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one for one in inspect.signature(body).parameters.values() if one.kind in kinds]


def _check_parameters(body: Callable[..., Any], counts: tuple[int, ...], usage: str) -> None:
    count = len(_positional(body)) if callable(body) else -1
    if count not in counts:
        raise _unsuitable(body, f"takes {count} parameters", f"write {usage}")


def _unsuitable(body: Any, why: str, hint: str) -> PenstockError:
    name = getattr(body, "__name__", type(body).__name__)
    return PenstockError("DAT-5605", f"{name} {why}: it is no connector", hint=hint, sqlstate="42883")


class ProgramConnectors:
    """The Python sources and sinks that a program has registered, by name without case."""

    def __init__(self) -> None:
        self._by_name: dict[str, PythonConnector] = {}

    def register(self, connector: PythonConnector, name: str | None) -> None:
        """Add a connector, in the place of one of that name. DAT-5605 for an undecorated object."""
        if not isinstance(connector, PythonSource | PythonSink):
            raise _unsuitable(connector, "is not decorated", "decorate it: @penstock.source, @penstock.sink")
        self._by_name[(name or connector.name).lower()] = connector

    @property
    def by_name(self) -> Mapping[str, PythonConnector]:
        """The connectors, by lower-case names."""
        return self._by_name
