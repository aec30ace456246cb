"""``dataclass(frozen=True)`` without compiling: a start defines some 350 of them, and the library compiles
six functions for each.

It saves 0.1 cpu-seconds of 0.57 until the API has the first row of ``SELECT k FROM ticks LIMIT 1``. Measured
against ``dataclasses.dataclass`` in its place: the least of six fresh processes each, in turn, byte code
warm.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_Made = TypeVar("_Made")
# The names under which the library's fields(), replace() and is_dataclass() look for the description.
_FIELDS, _PARAMS = "__dataclass_fields__", "__dataclass_params__"


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def dataclass(*, frozen: bool, eq: bool = True) -> Callable[[type[_Made]], type[_Made]]:
    """Return a decorator that makes of a class what ``dataclasses.dataclass(frozen=True)`` makes of it, its
    methods shared functions.

    With ``eq=False`` objects are compared by identity. For classes that are many; one whose objects are many
    is better compiled.
    """
    assert frozen, "of what can be changed there are few classes: take dataclasses.dataclass"

    def decorate(cls: type[_Made]) -> type[_Made]:
        named = _gather(cls)
        # A method that the class writes itself is never replaced, as in the library.
        _set_default(cls, "__init__", _initializer(cls, named))
        _set_default(cls, "__repr__", _representation([name for name, field in named.items() if field.repr]))
        if eq:
            # Python sets __hash__ to None in a class that defines __eq__ alone: that is no hash of its own.
            has_own_hash = vars(cls).get("__hash__") is not None or (
                "__hash__" in vars(cls) and "__eq__" not in vars(cls)
            )
            _set_default(
                cls, "__eq__", _equality(_key([name for name, field in named.items() if field.compare]))
            )
            if not has_own_hash:
                hashed = [n for n, f in named.items() if (f.compare if f.hash is None else f.hash)]
                cls.__hash__ = _hashing(cls, hashed)  # type: ignore[method-assign]
        _freeze(cls, frozenset(named))
        return cls

    return decorate


def _gather(cls: type[Any]) -> dict[str, dataclasses.Field[Any]]:
    """Give a class the fields of its bases and its own, as the library describes them, and return them by
    name.
    """
    own = vars(cls).get("__annotations__", {})
    body = {
        "__module__": cls.__module__,
        "__annotations__": own,
        **{name: vars(cls)[name] for name in own if name in vars(cls)},
    }
    # The library describes the fields of an empty class of the same annotations; it compiles nothing for it.
    described: type[Any] = dataclasses.dataclass(init=False, repr=False, eq=False)(
        type(cls.__name__, (), {**body, "__doc__": cls.__name__})
    )
    fields: dict[str, dataclasses.Field[Any]] = {}
    # Fields of bases come first, as the library orders them.
    for base in reversed(cls.__mro__[1:]):
        fields.update(vars(base).get(_FIELDS, {}))
    fields.update(vars(described)[_FIELDS])
    for name in own:
        # x: int = field(default=3) leaves 3 in the class; a field without a default leaves nothing.
        if isinstance(vars(cls).get(name), dataclasses.Field):
            if name in vars(described):
                setattr(cls, name, vars(described)[name])
            else:
                delattr(cls, name)
    # The description was made unfrozen; the library derives no unfrozen class from one with this flag.
    params = vars(described)[_PARAMS]
    params.frozen = True
    setattr(cls, _FIELDS, fields)
    setattr(cls, _PARAMS, params)
    named = {field.name: field for field in dataclasses.fields(cls)}
    _set_default(cls, "__match_args__", tuple(name for name, field in named.items() if not field.kw_only))
    return named


def _set_default(cls: type[Any], name: str, value: Any) -> None:
    if name not in vars(cls):
        setattr(cls, name, value)


def _initializer(cls: type[Any], named: dict[str, dataclasses.Field[Any]]) -> Callable[..., None]:
    """Return the constructor: by position when that is all of it, else by name."""
    assert all(field.init for field in named.values()), f"{cls.__name__} has a field that is not given"
    positional = tuple(name for name, field in named.items() if not field.kw_only)
    # -1 for a class with keyword-only fields: the fast path never applies.
    count = len(named) if len(positional) == len(named) else -1
    defaults = {name: field.default for name, field in named.items() if field.default is not MISSING}
    factories = {
        name: field.default_factory for name, field in named.items() if field.default_factory is not MISSING
    }
    completes = hasattr(cls, "__post_init__")

    def initialize(self: Any, /, *values: Any, **by_name: Any) -> None:
        if len(values) == count and not by_name:
            # Written into __dict__: __setattr__ refuses.
            self.__dict__.update(zip(positional, values))  # noqa: B905  of one length, and asked a hundred thousand times
        else:
            given = (
                # Defaults first: values by position and by name replace them.
                {**defaults, **_bind_positional(type(self), positional, values, by_name)}
                if values
                else {**defaults, **by_name}
            )
            # A factory is called for each object, so that no two share a list.
            for name, make in factories.items():
                if name not in given:
                    given[name] = make()
            if given.keys() != named.keys():
                missing, unknown = named.keys() - given.keys(), given.keys() - named.keys()
                raise TypeError(
                    f"{type(self).__name__}: not given: {sorted(missing)}; has no field: {sorted(unknown)}"
                )
            self.__dict__.update(given)
        if completes:
            self.__post_init__()

    return initialize


def _bind_positional(
    cls: type[Any], positional: tuple[str, ...], values: tuple[Any, ...], by_name: dict[str, Any]
) -> dict[str, Any]:
    if len(values) > len(positional):
        raise TypeError(f"{cls.__name__} takes {len(positional)} values by position, not {len(values)}")
    given = dict(zip(positional, values, strict=False))
    if by_name:
        if twice := given.keys() & by_name.keys():
            raise TypeError(f"{cls.__name__}: given twice: {sorted(twice)}")
        given.update(by_name)
    return given


def _representation(shown: list[str]) -> Callable[[Any], str]:
    def represent(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return represent


def _key(compared: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values by which two objects are compared."""
    if len(compared) > 1:
        return attrgetter(*compared)
    if not compared:
        return lambda _object: ()
    # attrgetter of one name returns no tuple.
    one = attrgetter(compared[0])
    return lambda made: (one(made),)


def _equality(key: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], bool]:
    def equal(self: Any, other: Any) -> bool:
        # As the library: an object of a derived class is never equal to one of its base.
        if other.__class__ is not self.__class__:
            return NotImplemented
        return key(self) == key(other)

    return equal


def _hashing(cls: type[Any], hashed: list[str]) -> Any:
    if not hashed:
        # All objects of a class without fields are equal. hash() of a text differs between processes.
        constant = zlib.crc32(cls.__qualname__.encode())
        return lambda _self: constant
    # The hash of a tuple of the fields, as the library computes it.
    key = _key(hashed)
    return lambda self: key(self).__hash__()


def _freeze(cls: type[Any], names: frozenset[str]) -> None:
    """Refuse to set or delete fields; a class derived without the decorator may have attributes of its
    own.
    """

    def set_value(self: Any, name: str, value: Any) -> None:
        # An object of a derived class may set attributes of its own, but no field.
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__ = set_value  # type: ignore[method-assign, assignment]
    cls.__delattr__ = delete  # type: ignore[method-assign, assignment]
