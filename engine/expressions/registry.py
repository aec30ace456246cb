"""The registry of kernels, by the canonical name of the function."""

from __future__ import annotations

from collections.abc import Callable

from penstock.engine.expressions.datetime.calendar_names import CALENDAR_WORDS
from penstock.engine.expressions.datetime.date_parts import MOMENTS, clock_date, clock_instant, clock_local
from penstock.engine.expressions.datetime.datetime_format import TIME_TEXT
from penstock.engine.expressions.datum import Datum
from penstock.engine.expressions.json.path_functions import JSON_TEXTS
from penstock.engine.expressions.kernel_factory import EvaluationContext, Factory
from penstock.engine.expressions.nested.array_functions import ARRAY_FUNCTIONS, ARRAY_SETS, concatenation
from penstock.engine.expressions.nested.constructors import NESTED_ACCESS
from penstock.engine.expressions.nested.map_functions import MAP_FUNCTIONS
from penstock.engine.expressions.nested.sequence import SEQUENCES
from penstock.engine.expressions.numeric.arithmetic import ARITHMETIC
from penstock.engine.expressions.numeric.bitwise import BITS
from penstock.engine.expressions.numeric.comparisons import COMPARISONS
from penstock.engine.expressions.numeric.hash_functions import DIGESTS
from penstock.engine.expressions.numeric.mathematics import MATHEMATICS, NUMBERS
from penstock.engine.expressions.text.encodings import ENCODINGS
from penstock.engine.expressions.text.like_and_regexp import TEXT_PATTERNS
from penstock.engine.expressions.text.scanned_texts import SCANNED
from penstock.engine.expressions.text.split_and_join import TEXT_LISTS
from penstock.engine.expressions.text.string_metrics import TEXT_WORDS
from penstock.engine.expressions.text.strings import TEXT, joined_texts
from penstock.engine.expressions.try_functions import TRIES

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
    **SCANNED,
    **TEXT_WORDS,
    **JSON_TEXTS,
    **CALENDAR_WORDS,
    **NUMBERS,
    **TRIES,
    # CONCAT and || : arrays or texts, by the type of the call
    "concat": concatenation(joined_texts),
    "concat_op": concatenation(joined_texts),
}

CLOCK_FUNCTIONS: dict[str, Callable[[EvaluationContext], Datum]] = {
    "current_timestamp": clock_instant,
    "proctime": clock_instant,
    "localtimestamp": clock_local,
    "current_date": clock_date,
}
