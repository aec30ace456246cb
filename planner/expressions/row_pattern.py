"""Row patterns: regular expressions over the variables of MATCH_RECOGNIZE. An earlier alternative is
preferred.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class Pattern:
    """Base of patterns."""

    @property
    def parts(self) -> tuple[Pattern, ...]:
        """The patterns that it consists of."""
        return ()

    @property
    def empty(self) -> bool:
        """Whether it matches the empty sequence of rows."""
        # every pattern defines it
        raise AssertionError(type(self))

    @property
    def size(self) -> int:
        """The number of row positions, with repetitions written out."""
        return sum(part.size for part in self.parts)

    def names(self) -> Iterator[str]:
        """Yield the names of its variables from left to right, as often as written."""
        for part in self.parts:
            yield from part.names()


@dataclass(frozen=True)
class Variable(Pattern):
    """One row that meets the variable's condition."""

    name: str

    @property
    def empty(self) -> bool:
        return False

    @property
    def size(self) -> int:
        return 1

    def names(self) -> Iterator[str]:
        yield self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Concatenation(Pattern):
    """One pattern after the other."""

    members: tuple[Pattern, ...]

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return self.members

    @property
    def empty(self) -> bool:
        return all(part.empty for part in self.members)

    def __str__(self) -> str:
        return " ".join(f"({part})" if isinstance(part, Alternation) else str(part) for part in self.members)


@dataclass(frozen=True)
class Alternation(Pattern):
    """One of the branches; an earlier one is preferred."""

    branches: tuple[Pattern, ...]

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return self.branches

    @property
    def empty(self) -> bool:
        # A* | B may match no row
        return any(part.empty for part in self.branches)

    def __str__(self) -> str:
        return " | ".join(map(str, self.branches))


@dataclass(frozen=True)
class Repetition(Pattern):
    """The part ``least`` to ``most`` times (None: unlimited): as often as possible, or as rarely when not
    ``greedy``.
    """

    part: Pattern
    least: int
    most: int | None
    greedy: bool = True

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return (self.part,)

    @property
    def empty(self) -> bool:
        # (A*){3} is empty too
        return self.least == 0 or self.part.empty

    @property
    def size(self) -> int:
        # A{2,} is A A A*: two mandatory positions and the loop
        return self.part.size * (self.least + 1 if self.most is None else self.most)

    def __str__(self) -> str:
        inner = str(self.part) if isinstance(self.part, Variable) else f"({self.part})"
        # the shortest spelling: *, +, ?, {n}, {n,}, {n,m}
        sign = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((self.least, self.most))
        if sign is None:
            sign = (
                f"{{{self.least}}}"
                if self.most == self.least
                else f"{{{self.least},{'' if self.most is None else self.most}}}"
            )
        return f"{inner}{sign}{'' if self.greedy else '?'}"


@dataclass(frozen=True)
class Exclusion(Pattern):
    """Rows that belong to the match, but that ALL ROWS PER MATCH does not emit."""

    part: Pattern

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return (self.part,)

    @property
    def empty(self) -> bool:
        return self.part.empty

    def __str__(self) -> str:
        return f"{{- {self.part} -}}"
