"""Every kernel by its function's canonical name."""

from __future__ import annotations

from collections.abc import Callable

from penstock.engine.expressions.arithmetic import ARITHMETIC
from penstock.engine.expressions.array_functions import ARRAY_FUNCTIONS, concatenation
from penstock.engine.expressions.array_sets import ARRAY_SETS
from penstock.engine.expressions.bits import BITS
from penstock.engine.expressions.calendar_words import CALENDAR_WORDS
from penstock.engine.expressions.columns import Datum
from penstock.engine.expressions.comparisons import COMPARISONS
from penstock.engine.expressions.digests import DIGESTS
from penstock.engine.expressions.encodings import ENCODINGS
from penstock.engine.expressions.json_texts import JSON_TEXTS
from penstock.engine.expressions.map_functions import MAP_FUNCTIONS
from penstock.engine.expressions.mathematics import MATHEMATICS
from penstock.engine.expressions.moments import MOMENTS, clock_date, clock_instant, clock_local
from penstock.engine.expressions.nested_access import NESTED_ACCESS
from penstock.engine.expressions.numbers import NUMBERS
from penstock.engine.expressions.sequences import SEQUENCES
from penstock.engine.expressions.site import EvaluationContext, Factory
from penstock.engine.expressions.text import TEXT, joined_texts
from penstock.engine.expressions.text_lists import TEXT_LISTS
from penstock.engine.expressions.text_patterns import TEXT_PATTERNS
from penstock.engine.expressions.text_words import TEXT_WORDS
from penstock.engine.expressions.time_text import TIME_TEXT
from penstock.engine.expressions.tries import TRIES

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
