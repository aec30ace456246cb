"""Every kernel by its function's canonical name."""

from __future__ import annotations

from collections.abc import Callable

from engine.expressions.arithmetic import ARITHMETIC
from engine.expressions.array_functions import ARRAY_FUNCTIONS, concatenation
from engine.expressions.array_sets import ARRAY_SETS
from engine.expressions.bits import BITS
from engine.expressions.calendar_words import CALENDAR_WORDS
from engine.expressions.columns import Datum
from engine.expressions.comparisons import COMPARISONS
from engine.expressions.digests import DIGESTS
from engine.expressions.encodings import ENCODINGS
from engine.expressions.json_texts import JSON_TEXTS
from engine.expressions.map_functions import MAP_FUNCTIONS
from engine.expressions.mathematics import MATHEMATICS
from engine.expressions.moments import MOMENTS, clock_date, clock_instant, clock_local
from engine.expressions.nested_access import NESTED_ACCESS
from engine.expressions.numbers import NUMBERS
from engine.expressions.sequences import SEQUENCES
from engine.expressions.site import EvaluationContext, Factory
from engine.expressions.text import TEXT, joined_texts
from engine.expressions.text_lists import TEXT_LISTS
from engine.expressions.text_patterns import TEXT_PATTERNS
from engine.expressions.text_words import TEXT_WORDS
from engine.expressions.time_text import TIME_TEXT
from engine.expressions.tries import TRIES

KERNELS: dict[str, Factory] = {
    **ARITHMETIC,
    **COMPARISONS,
    **MATHEMATICS,
    **TEXT,
    **TEXT_PATTERNS,
    **TEXT_LISTS,
    **MOMENTS,
    **TIME_TEXT,
    **NESTED_ACCESS,
    **ARRAY_FUNCTIONS,
    **ARRAY_SETS,
    **MAP_FUNCTIONS,
    **SEQUENCES,
    **BITS,
    **DIGESTS,
    **ENCODINGS,
    **TEXT_WORDS,
    **JSON_TEXTS,
    **CALENDAR_WORDS,
    **NUMBERS,
    **TRIES,
    "concat": concatenation(joined_texts),
    "concat_op": concatenation(joined_texts),
}

CLOCK_FUNCTIONS: dict[str, Callable[[EvaluationContext], Datum]] = {
    "current_timestamp": clock_instant,
    "proctime": clock_instant,
    "localtimestamp": clock_local,
    "current_date": clock_date,
}
