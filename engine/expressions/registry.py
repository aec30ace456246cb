"""Every kernel by its function's canonical name."""

from __future__ import annotations

from collections.abc import Callable

from engine.expressions.arithmetic import ARITHMETIC
from engine.expressions.columns import Datum
from engine.expressions.comparisons import COMPARISONS
from engine.expressions.mathematics import MATHEMATICS
from engine.expressions.moments import MOMENTS, clock_date, clock_instant, clock_local
from engine.expressions.site import EvaluationContext, Factory
from engine.expressions.text import TEXT
from engine.expressions.text_patterns import TEXT_PATTERNS
from engine.expressions.time_text import TIME_TEXT

KERNELS: dict[str, Factory] = {**ARITHMETIC, **COMPARISONS, **MATHEMATICS, **TEXT, **TEXT_PATTERNS, **MOMENTS, **TIME_TEXT}

CLOCK_FUNCTIONS: dict[str, Callable[[EvaluationContext], Datum]] = {
    "current_timestamp": clock_instant,
    "proctime": clock_instant,
    "localtimestamp": clock_local,
    "current_date": clock_date,
}
