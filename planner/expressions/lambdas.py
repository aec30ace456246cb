"""Lambda functions in expressions: ``x -> x + 1`` as the argument of a call."""

from __future__ import annotations

from dataclasses import field, replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.expressions.nodes import Expression


@dataclass(frozen=True)
class LambdaVariable(Expression):
    """A parameter of the enclosing lambda function. ``number`` counts the parameters of outer functions;
    ``name`` is for display only.
    """

    # equality is by number: x -> x + 1 equals y -> y + 1
    number: int = 0
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Lambda(Expression):
    """A lambda function as an argument. Its type is the type of its body; the body may read columns of the
    rows too.
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
