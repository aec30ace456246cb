"""Compiled date and time patterns in Java's letters: they format times and parse texts. Local times are built
from calendar parts here for all kernels."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.expressions.datetime.fixed_width_patterns import FixedWidthPattern
from penstock.engine.expressions.datum import array_of, values_of
from penstock.engine.expressions.evaluation_errors import Fault, bad_argument

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HALVES = ("AM", "PM")
_DIGITS = {
    "y": pc.year,
    "M": pc.month,
    "d": pc.day,
    "H": pc.hour,
    "m": pc.minute,
    "s": pc.second,
    "D": pc.day_of_year,
    "Q": pc.quarter,
}
_LETTERS = "yMdHhmsSaEDQ"
_HOUR = 3_600_000_000
# microseconds within which a letter does not change
_SPANS = {"H": _HOUR, "h": _HOUR, "a": _HOUR, "m": 60_000_000, "s": 1_000_000, "S": 1}
_DAY = 24 * _HOUR
Numbers = np.ndarray | int
_OFTEN = 4
"""There must be so many times as many times as spans for texts to be made by span."""


@dataclass(frozen=True)
class Piece:
    """A run of one pattern letter. With an empty ``letter`` it is literal text."""

    letter: str
    text: str

    @property
    def width(self) -> int:
        """The length of the run."""
        return len(self.text)


def pieces_of(pattern: str) -> tuple[Piece, ...]:
    """Return the pieces of a pattern. Raise Fault RUN-2004 for an unknown letter or an open quote."""
    pieces: list[Piece] = []
    # Quoted text, a run of one letter, other characters, or a quote that nothing closes.
    for match in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|'", pattern):
        quoted, letter = match[1], match[2]
        if match[0] == "'":
            raise bad_argument(f"the pattern {pattern!r} has an open quote")
        # 'T' is a literal, '' is a quote.
        if quoted is not None:
            pieces.append(Piece("", quoted.replace("''", "'") or "'"))
        elif letter is None:
            pieces.append(Piece("", match[0]))
        # u (year) and y (year of the era) are the same from the year 1 on.
        elif letter in ("u", "y"):
            pieces.append(Piece("y", match[0]))
        elif letter in _LETTERS:
            pieces.append(Piece(letter, match[0]))
        else:
            raise bad_argument(
                f"the pattern {pattern!r} has the letter {letter!r}",
                f"letters are {' '.join(_LETTERS)}; quote others with '",
            )
    return tuple(pieces)


def _padded(numbers: pa.Array, width: int) -> pa.Array:
    text = pc.cast(numbers, pa.string())
    return pc.utf8_lpad(text, width, "0") if width > 1 else text


def _formatter(piece: Piece) -> Callable[[pa.Array], pa.Array | str]:
    letter, width = piece.letter, piece.width
    if not letter:
        return lambda t: piece.text
    # yy: 24 for 2024
    if letter == "y" and width == 2:
        return lambda t: _padded(array_of(values_of(pc.year(t)) % 100, None, pa.int64()), 2)
    # MMM: Jan; MMMM: January
    if letter == "M" and width >= 3:
        return lambda t: _named(_MONTHS, pc.month(t), 1, width)
    # E: Mon; EEEE: Monday
    if letter == "E":
        return lambda t: _named(_DAYS, pc.day_of_week(t), 0, width)
    if letter == "a":
        return lambda t: _named(_HALVES, pc.cast(pc.greater_equal(pc.hour(t), 12), pa.int64()), 0, 4)
    # Hours 1 to 12: midnight and noon are 12.
    if letter == "h":
        return lambda t: _padded(array_of((values_of(pc.hour(t)) + 11) % 12 + 1, None, pa.int64()), width)
    if letter == "S" and width > 6:
        raise bad_argument("a fraction has at most six digits")
    # SSS: the first three digits of the microseconds
    if letter == "S":
        return lambda t: pc.utf8_slice_codeunits(
            _padded(array_of(values_of(t) % 1_000_000, None, pa.int64()), 6), 0, width
        )
    return lambda t: _padded(_DIGITS[letter](t), width)


def _named(names: tuple[str, ...], numbers: pa.Array, first: int, width: int) -> pa.Array:
    shown = [name if width >= 4 else name[:3] for name in names]
    return pa.array(shown).take(array_of(values_of(numbers) - first, None, pa.int64()))


def compile_format(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function from TIMESTAMP columns to their texts."""
    pieces = pieces_of(pattern)
    formatters = [_formatter(piece) for piece in pieces]
    fixed = FixedWidthPattern.of([(piece.letter, piece.text) for piece in pieces])
    span = min((_SPANS.get(piece.letter, _DAY) for piece in pieces), default=_DAY)

    def format_times(times: pa.Array) -> pa.Array:
        """Format times, one text per span of the finest letter. When times far outnumber spans, each span is
        formatted once and its text reused.
        """
        # The smallest span of a column with NULLs is unknown.
        if times.null_count or not len(times):
            return format_each(times)
        spans = values_of(times) // span
        first = int(spans.min())
        count = int(spans.max()) - first + 1
        if count > spans.size // _OFTEN:
            return format_each(times)
        texts = format_each(array_of(np.arange(first, first + count) * span, None, times.type))
        return texts.take(array_of(spans - first, None, pa.int64()))

    def format_each(times: pa.Array) -> pa.Array:
        # an empty pattern
        if not formatters:
            return pc.if_else(pc.is_valid(times), "", pa.scalar(None, pa.string()))
        # The formatters assume times without NULLs; these are put back at the end.
        filled = pc.fill_null(times, pa.scalar(0, times.type)) if times.null_count else times
        if fixed is not None and (written := fixed.write(times, values_of(filled))) is not None:
            return written
        text = pc.binary_join_element_wise(
            *[pa.scalar(p) if isinstance(p := f(filled), str) else p for f in formatters], ""
        )
        if isinstance(text, pa.Scalar):
            text = pa.repeat(text, len(times))
        return (
            pc.if_else(pc.is_valid(times), text, pa.scalar(None, pa.string())) if times.null_count else text
        )

    return format_times


_READ_WIDTHS = {"M": (1, 2), "d": (1, 2), "H": (1, 2), "h": (1, 2), "m": (1, 2), "s": (1, 2), "D": (1, 3)}


def _reader(piece: Piece) -> str:
    """Return the regular expression of a piece. A repeated letter matches exactly that many digits, a single
    letter as many as fit.
    """
    letter, width = piece.letter, piece.width
    # text of the pattern itself matches as it is
    if not letter:
        return re.escape(piece.text)
    if letter == "M" and width >= 3:
        return "(?P<N>" + "|".join(name if width >= 4 else name[:3] for name in _MONTHS) + ")"
    # matched, but not used: the date is known from the other letters
    if letter == "E":
        return "(?:" + "|".join(name if width >= 4 else name[:3] for name in _DAYS) + ")"
    if letter == "a":
        return "(?P<a>AM|PM|am|pm)"
    if letter == "S":
        return f"(?P<S>[0-9]{{{width}}})"
    if letter == "y":
        return (
            "(?P<y>[0-9]{2})"
            if width == 2
            else f"(?P<y>[0-9]{{{width}}})"
            if width > 1
            else "(?P<y>[0-9]{1,6})"
        )
    if letter == "Q":
        raise bad_argument("a quarter cannot be read from text")
    low, high = _READ_WIDTHS[letter]
    return f"(?P<{letter}>[0-9]{{{low},{high}}})" if width == 1 else f"(?P<{letter}>[0-9]{{{width}}})"


def compile_reader(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function from texts to local TIMESTAMPs. NULL where a text does not match or is not a real
    time.
    """
    pieces = pieces_of(pattern)
    # "N" is the group of a month by name; the name of a day is matched but not used.
    letters = [
        ("N" if p.letter == "M" and p.width >= 3 else p.letter)
        for p in pieces
        if p.letter and p.letter != "E"
    ]
    repeated = {letter for letter in letters if letters.count(letter) > 1}
    if repeated:
        raise bad_argument(f"the pattern {pattern!r} names {', '.join(sorted(repeated))} twice")
    # yy: 2000 to 2099
    two_digit_year = any(p.letter == "y" and p.width == 2 for p in pieces)
    regex = "^" + "".join(_reader(piece) for piece in pieces) + "$"

    fixed = FixedWidthPattern.of([(piece.letter, piece.text) for piece in pieces])
    if fixed is not None:
        return fixed.read

    def read(texts: pa.Array) -> pa.Array:
        # no letter: every text that matches is 1970-01-01
        if not letters:
            return pc.if_else(
                pc.match_substring_regex(texts, regex),
                pa.scalar(0, pa.timestamp("us")),
                pa.scalar(None, pa.timestamp("us")),
            )
        groups = pc.extract_regex(texts, regex)
        fields = {letter: pc.struct_field(groups, letter) for letter in letters}
        return _assembled(fields, np.asarray(pc.is_null(groups)), two_digit_year)

    return read


def _number(fields: dict[str, pa.Array], letter: str, default: int) -> np.ndarray | int:
    column = fields.get(letter)
    return default if column is None else values_of(pc.cast(pc.fill_null(column, str(default)), pa.int64()))


def _assembled(fields: dict[str, pa.Array], missing: np.ndarray, two_digit_year: bool) -> pa.Array:
    """Build times from the parts of matched texts. Absent parts default to 1970-01-01 00:00:00."""
    year = _number(fields, "y", 1970) + (2000 if two_digit_year else 0)
    month = _number(fields, "M", 1)
    if "N" in fields:
        month = (
            values_of(
                pc.cast(
                    pc.index_in(
                        pc.utf8_slice_codeunits(fields["N"], 0, 3), pa.array([m[:3] for m in _MONTHS])
                    ),
                    pa.int64(),
                )
            )
            + 1
        )
    # conflicts are masks: a text with PM and hour 9 is NULL, others are read
    hour, conflict = _hour(fields)
    micros: np.ndarray | int = 0
    if "S" in fields:
        micros = values_of(
            pc.cast(
                pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(fields["S"], "0"), 6, "0"), 0, 6),
                pa.int64(),
            )
        )
    day = _number(fields, "d", 1)
    clock = hour, _number(fields, "m", 0), _number(fields, "s", 0), micros, len(missing)
    # A day of the year fixes month and day; if these are in the pattern too, they must agree.
    if "D" in fields:
        day_of_year = np.asarray(_number(fields, "D", 1))
        times, real = local_times(year, 1, 1, *clock)
        times = times + (day_of_year - 1) * _DAY
        date = array_of(times, None, pa.timestamp("us"))
        conflict = conflict | (day_of_year < 1) | (values_of(pc.year(date)) != year)
        conflict = (
            conflict
            | (_has_any(fields, "MN") & (values_of(pc.month(date)) != month))
            | (_has_any(fields, "d") & (values_of(pc.day(date)) != day))
        )
    else:
        times, real = local_times(year, month, day, *clock)
    return array_of(times, missing | ~real | conflict, pa.timestamp("us"))


def _has_any(fields: dict[str, pa.Array], letters: str) -> bool:
    return any(letter in fields for letter in letters)


def _hour(fields: dict[str, pa.Array]) -> tuple[Numbers, Numbers]:
    """Return the hour of the day, and the mask of conflicts. H may contradict h or a, and h may be outside 1
    to 12.
    """
    whole = np.asarray(_number(fields, "H", 0))
    # 12 AM is midnight, 12 PM is noon
    afternoon = (
        np.asarray(pc.fill_null(pc.equal(pc.utf8_upper(fields["a"]), "PM"), False))
        if "a" in fields
        else np.False_
    )
    clock_hour = np.asarray(_number(fields, "h", 12))
    bad = (clock_hour < 1) | (clock_hour > 12)
    if "H" not in fields:
        return clock_hour % 12 + 12 * afternoon, bad
    bad = (
        bad
        | (_has_any(fields, "a") & ((whole >= 12) != afternoon))
        | (_has_any(fields, "h") & (whole % 12 != clock_hour % 12))
    )
    return whole, bad


_FIRST_YEAR, _LAST_YEAR = -1000, 11000


@functools.cache
def _months() -> tuple[np.ndarray, np.ndarray]:
    """Return the first day (days since 1970) and the length of every month in the supported years."""
    # one more than the last month: the difference gives each month its length
    months = np.arange((_FIRST_YEAR - 1970) * 12, (_LAST_YEAR + 1 - 1970) * 12 + 1).astype("M8[M]")
    first = months.astype("M8[D]").astype(np.int64)
    return first[:-1], np.diff(first)


def local_times(
    year: Numbers,
    month: Numbers,
    day: Numbers,
    hour: Numbers,
    minute: Numbers,
    second: Numbers,
    micros: Numbers,
    length: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return local microseconds of calendar parts, and the mask of real times. Years must be from -1000 to
    11000.
    """
    real = (
        _within(month, 1, 12)
        & _within(hour, 0, 23)
        & _within(minute, 0, 59)
        & _within(second, 0, 59)
        & _within(year, _FIRST_YEAR, _LAST_YEAR)
    )
    first, lengths = _months()
    # The index must be valid even where the parts are not.
    month_index = np.where(real, (np.asarray(year, np.int64) - _FIRST_YEAR) * 12 + month - 1, 0)
    real = real & (np.asarray(day) >= 1) & (day <= lengths[month_index])
    seconds = ((first[month_index] + day - 1) * 24 + hour) * 3600 + minute * 60 + second
    times = np.where(real, seconds * 1_000_000 + micros, 0)
    # All parts may be constants.
    return np.broadcast_to(times, (length,)), np.broadcast_to(real, (length,))


def _within(part: Numbers, low: int, high: int) -> np.ndarray:
    values = np.asarray(part)
    return (values >= low) & (values <= high)


def date_parts_fault(year: int, month: int, day: int) -> Fault:
    """Return the fault of a date that is not in the calendar."""
    return bad_argument(f"there is no date {year:04d}-{month:02d}-{day:02d}")
