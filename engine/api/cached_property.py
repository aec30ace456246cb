"""A property that is computed once for each object, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

ValueT = TypeVar("ValueT")


class cached_property(Generic[ValueT]):
    """Computes a property at its first use and stores it in the object. Two threads may both compute it.

    For objects of which each slot has its own, such as batches. Until Python 3.12 the property of the library
    has one lock for all objects of a class. A slot that computes it for a batch makes the other slots wait,
    and with them whoever waits for the interpreter.
    """

    def __init__(self, compute: Callable[[Any], ValueT]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[ValueT]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> ValueT: ...

    def __get__(self, instance: object | None, owner: type) -> ValueT | cached_property[ValueT]:
        # asked of the class
        if instance is None:
            return self
        value = self._compute(instance)
        # found before this descriptor from now on, and written past a frozen dataclass
        instance.__dict__[self._name] = value
        return value
