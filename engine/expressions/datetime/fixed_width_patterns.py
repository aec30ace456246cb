"""Date and time patterns whose texts all have one width, such as ``yyyy-MM-dd HH:mm:ss.SSS``. Compiled loops
write and read them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.expressions.datum import array_of
from penstock.engine.kernels import arrow_views

# The widths of a letter whose texts have as many digits, whatever the time.
_WIDTHS = {
    "y": (2, 4),
    "M": (2,),
    "d": (2,),
    "H": (2,),
    "m": (2,),
    "s": (2,),
    "S": (1, 2, 3, 4, 5, 6),
}
# Microseconds of the years 0 to 9999, which have four digits.
_FIRST, _END = (int(np.datetime64(year, "us").astype(np.int64)) for year in ("0000", "10000"))


@dataclass(frozen=True)
class FixedWidthPattern:
    """The arguments of ``engine/kernels/functions/time_texts.py``."""

    template: np.ndarray
    letters: np.ndarray
    places: np.ndarray
    widths: np.ndarray

    @staticmethod
    def of(pieces: Sequence[tuple[str, str]]) -> FixedWidthPattern | None:
        """Return the pattern of these pieces: a letter and its run, or no letter and literal text. ``None``
        when the width of its texts may vary.
        """
        fields = [(letter, len(text)) for letter, text in pieces if letter]
        if not fields or any(width not in _WIDTHS.get(letter, ()) for letter, width in fields):
            return None
        template, places = b"", []
        for letter, text in pieces:
            if letter:
                places.append(len(template))
            template += bytes(len(text)) if letter else text.encode()
        # A zero of a literal text would be taken for a digit's place.
        if template.count(0) != sum(width for _, width in fields):
            return None
        return FixedWidthPattern(
            np.frombuffer(template, np.uint8),
            np.array([ord(letter) for letter, _ in fields], np.uint8),
            np.array(places, np.int64),
            np.array([width for _, width in fields], np.int64),
        )

    def write(self, times: pa.Array, micros: np.ndarray) -> pa.Array | None:
        """Return the texts of times, whose values without NULLs are ``micros``; ``None`` where a year has not
        four digits.
        """
        from penstock.engine.kernels.functions import time_texts  # numba is loaded where it is needed

        if not micros.size or micros.min() < _FIRST or micros.max() >= _END:
            return None
        width = self.template.size
        out = np.empty(micros.size * width, np.uint8)
        time_texts.write_times(micros, self.template, self.letters, self.places, self.widths, out)
        offsets = np.arange(micros.size + 1) * width
        return arrow_views.array_of_strings(offsets, out, arrow_views.validity(times), pa.string())

    def read(self, texts: pa.Array) -> pa.Array:
        """Return the times of texts, NULL where a text is none."""
        from penstock.engine.kernels.functions import time_texts

        micros, valid = np.empty(len(texts), np.int64), np.empty(len(texts), np.uint8)
        offsets, data = arrow_views.string_parts(texts)
        time_texts.read_times(
            offsets, data, self.template, self.letters, self.places, self.widths, micros, valid
        )
        missing = valid == 0
        if texts.null_count:
            missing |= arrow_views.validity(texts) == 0
        return array_of(micros, missing, pa.timestamp("us"))
