"""Where a kernel is built: the call, what is constant in it, and what surrounds it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import DataType
from penstock.engine.api.clock import Clock
from penstock.engine.expressions.datum import Kernel
from penstock.planner.expressions.nodes import Call


@dataclass(frozen=True)
class EvaluationContext:
    """What expressions may read besides columns: the session's time zone, and a clock for
    ``current_timestamp`` and its kin.
    """

    zone: str = "UTC"
    clock: Clock | None = None


@dataclass(frozen=True)
class CallSite:
    """One call at compile time. ``constants`` holds a scalar for each argument that never changes, else
    ``None``.
    """

    call: Call
    constants: tuple[pa.Scalar | None, ...]
    context: EvaluationContext

    @property
    def kinds(self) -> tuple[DataType, ...]:
        """The types of the arguments."""
        return tuple(arg.type for arg in self.call.args)

    def constant(self, position: int) -> object:
        """Return the value of a constant argument; ``None`` when it is NULL, absent, or not constant."""
        scalar = self.constants[position] if position < len(self.constants) else None
        return None if scalar is None else scalar.as_py()

    def is_constant(self, *positions: int) -> bool:
        """Return whether these arguments (absent ones count) are constants other than NULL."""
        given = [self.constants[p] for p in positions if p < len(self.constants)]
        return all(scalar is not None and scalar.is_valid for scalar in given)


Factory = Callable[[CallSite], Kernel]


def plain(kernel: Kernel) -> Factory:
    """Return the factory of a kernel that is the same at every call."""
    return lambda site: kernel
