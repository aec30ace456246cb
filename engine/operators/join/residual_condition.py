"""The condition of a join beyond its keys, evaluated over the columns it reads: pairs that fail it are
never put together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import is_true
from penstock.engine.expressions.call_site import EvaluationContext
from penstock.engine.expressions.compiler import compile_predicate
from penstock.planner.expressions.nodes import Column, Expression

Gather = Callable[[list[int]], list[pa.Array]]
"""Gives columns of one side, by their positions in it, a value for each pair."""


class PairCondition:
    """A predicate over left and right columns, those of the right side counted on from ``left_width``."""

    def __init__(self, condition: Expression, left_width: int, time_zone: str) -> None:
        read = sorted(condition.columns())
        places = {index: place for place, index in enumerate(read)}
        self._left = [index for index in read if index < left_width]
        self._right = [index - left_width for index in read if index >= left_width]
        narrow = condition.transform(
            lambda node: replace(node, index=places[node.index]) if isinstance(node, Column) else node
        )
        self._holds = compile_predicate(narrow, EvaluationContext(time_zone))

    def holds(self, left: Gather, right: Gather, pairs: int) -> np.ndarray:
        """Return which pairs satisfy the condition; NULL is no."""
        columns = (left(self._left) if self._left else []) + (right(self._right) if self._right else [])
        if not columns:
            columns = [pa.nulls(pairs)]
        return is_true(
            self._holds(
                pa.RecordBatch.from_arrays(columns, names=[f"c{place}" for place in range(len(columns))])
            )
        )
