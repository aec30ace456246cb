"""Shared methods do what compiled ones do: each class is made both ways and asked the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest

from penstock.catalog.frozen_dataclass import dataclass

Way = Callable[..., Any]
WAYS = pytest.mark.parametrize("way", [dataclass, dataclasses.dataclass], ids=["shared", "compiled"])


def family(way: Way) -> tuple[type[Any], ...]:
    @way(frozen=True)
    class Base:
        """A base."""

        limit: ClassVar[int] = 3
        name: str
        span: int = field(default=0, compare=False, kw_only=True)

        @cached_property
        def length(self) -> int:
            return len(self.name)

    @way(frozen=True)
    class Derived(Base):
        """A class with what there is of fields."""

        parts: tuple[int, ...] = ()
        options: dict[str, int] = field(default_factory=dict, hash=False, repr=False)
        seen: list[int] = field(default_factory=list, repr=False, compare=False)

        def __post_init__(self) -> None:
            if len(self.parts) > self.limit:
                raise ValueError("too many")

    @way(frozen=True, eq=False)
    class Identity:
        """Compared by identity."""

        value: int

    @way(frozen=True)
    class Nothing:
        """Has no fields."""

    return Base, Derived, Identity, Nothing


@WAYS
def test_values_by_position_by_name_and_by_default(way: Way) -> None:
    base, derived, _identity, nothing = family(way)
    made = derived("a", (1, 2), span=7)
    assert (made.name, made.parts, made.span, made.seen, made.limit, made.length) == (
        "a",
        (1, 2),
        7,
        [],
        3,
        1,
    )
    assert derived(parts=(1,), name="a") == derived("a", (1,), {}, [4])
    assert derived("a").seen is not derived("a").seen
    assert replace(made, name="bb") == derived("bb", (1, 2)) and replace(made, name="bb").length == 2
    assert [f.name for f in dataclasses.fields(made)] == ["name", "span", "parts", "options", "seen"]
    assert derived.__match_args__ == ("name", "parts", "options", "seen") and base.__match_args__ == ("name",)
    assert dataclasses.asdict(base("a")) == {"name": "a", "span": 0} and nothing() == nothing()


@WAYS
def test_what_equals_and_what_does_not(way: Way) -> None:
    base, derived, identity, nothing = family(way)
    assert base("a", span=1) == base("a", span=2) and {base("a", span=1), base("a", span=2)} == {base("a")}
    assert base("a") != base("b") and base("a") != derived("a") and base("a") != "a"
    assert (
        derived("a", options={"b": 1}) != derived("a")
        and len({derived("a", options={"b": 1}), derived("a")}) == 2
    )
    assert {derived("a", (1,)): 5}[derived("a", (1,))] == 5 and len({nothing(), nothing()}) == 1
    assert identity(1) != identity(1) and len({identity(1), identity(1)}) == 2
    undefined = float("nan")
    assert base(undefined) == base(undefined)


@WAYS
def test_how_it_is_shown(way: Way) -> None:
    base, derived, _identity, nothing = family(way)
    assert repr(base("a")).endswith("Base(name='a', span=0)") and repr(derived("a")).endswith(
        "Derived(name='a', span=0, parts=())"
    )
    assert repr(nothing()).endswith("Nothing()")


@WAYS
def test_nothing_can_be_set(way: Way) -> None:
    base, *_ = family(way)
    made = base("a")
    for change in (
        lambda: setattr(made, "name", "b"),
        lambda: setattr(made, "other", 1),
        lambda: delattr(made, "name"),
    ):
        with pytest.raises(FrozenInstanceError):
            change()

    class Undecorated(base):
        """May have attributes of its own."""

    free = Undecorated("a")
    free.other = 1
    with pytest.raises(FrozenInstanceError):
        free.name = "b"
    assert free.other == 1


@WAYS
@pytest.mark.parametrize("wrong", [(), ("a", (), {}, [], 1), ("a", {"name": "b"}), ("a", {"unknown": 1})])
def test_wrong_values_are_refused(way: Way, wrong: tuple[Any, ...]) -> None:
    derived = family(way)[1]
    named = wrong[-1] if wrong and isinstance(wrong[-1], dict) else {}
    with pytest.raises(TypeError):
        derived(*wrong[: len(wrong) - bool(named)], **named)
    with pytest.raises(ValueError, match="too many"):
        derived("a", (1, 2, 3, 4))


def test_the_two_ways_may_be_mixed() -> None:
    base = family(dataclass)[0]

    @dataclasses.dataclass(frozen=True)
    class Compiled(base):
        """Compiled, of a base that is not."""

        more: int = 1

    @dataclass(frozen=True)
    class Shared(Compiled):
        """Shared, of a base that is compiled."""

        most: int = 2

    made = Shared("a", 5, 6, span=3)
    assert (made.name, made.more, made.most, made.span) == ("a", 5, 6, 3) and made == Shared("a", 5, 6)


def test_own_methods_are_kept() -> None:
    @dataclass(frozen=True)
    class Own:
        """Has methods of its own."""

        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.value % 2 == other.value % 2

        def __hash__(self) -> int:
            return self.value % 2

        def __repr__(self) -> str:
            return f"<{self.value}>"

    assert Own(1) == Own(3) and len({Own(1), Own(3)}) == 1 and repr(Own(4)) == "<4>"
