"""Functions inside of expressions: ``x -> x + 1`` as the argument of a call."""

from __future__ import annotations

from dataclasses import field, replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.expressions.nodes import Expression


@dataclass(frozen=True)
class LambdaVariable(Expression):
    """A parameter of the function around it: ``number`` counts the parameters outside of it; ``name`` is
    for people only.
    """

    number: int = 0
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Lambda(Expression):
    """A function as the argument of a call; its type is its body's, which may read the columns of the rows
    too.
    """

    parameters: tuple[LambdaVariable, ...] = ()
    body: Expression = None  # type: ignore[assignment]  # dataclass order: every node is built with it

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.body,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, body=children[0])

    def __str__(self) -> str:
        names = ", ".join(map(str, self.parameters))
        return f"{names if len(self.parameters) == 1 else f'({names})'} -> {self.body}"
