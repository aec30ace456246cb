"""DuckDB macros that are created before a query that calls them runs: functions whose expression would be too
long to repeat.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

_NAME = re.compile(r"\bpenstock_\w+")

MACROS = (
    # the shortest decimal text of a float as Java prints it: 1.0E7 from ten million on, 1.0E-4 below a
    # thousandth
    """
    CREATE TEMP MACRO penstock_scientific(digits, exponent) AS
      substr(digits, 1, 1) || '.' || coalesce(nullif(rtrim(substr(digits, 2), '0'), ''), '0') || 'E' || exponent
    """,
    """
    CREATE TEMP MACRO penstock_positive_text(t, x) AS CASE
      WHEN contains(t, 'e') THEN penstock_scientific(replace(split_part(t, 'e', 1), '.', ''), CAST(split_part(t, 'e', 2) AS INT))
      WHEN x >= 1e7 THEN penstock_scientific(replace(t, '.', ''), strlen(split_part(t, '.', 1)) - 1)
      WHEN x < 1e-3 AND x > 0 THEN
        penstock_scientific(ltrim(split_part(t, '.', 2), '0'), strlen(ltrim(split_part(t, '.', 2), '0')) - strlen(split_part(t, '.', 2)) - 1)
      ELSE t END
    """,
    """
    CREATE TEMP MACRO penstock_text(x) AS CASE
      WHEN isnan(x) THEN 'NaN'
      WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END
      WHEN signbit(x) THEN '-' || penstock_positive_text(substr(CAST(x AS VARCHAR), 2), -x)
      ELSE penstock_positive_text(CAST(x AS VARCHAR), x) END
    """,
    # Spark's shorter forms of a day, and no words such as infinity
    r"""
    CREATE TEMP MACRO penstock_moment(s) AS CASE
      WHEN regexp_full_match(trim(s), '[0-9]{4}') THEN trim(s) || '-01-01'
      WHEN regexp_full_match(trim(s), '[0-9]{4}-[0-9]{1,2}') THEN trim(s) || '-01'
      WHEN regexp_matches(s, '^\s*[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}(\s*$|[ T])') OR s IS NULL THEN trim(s)
      ELSE 'no moment: ' || s END
    """,
    r"""
    CREATE TEMP MACRO penstock_day(s) AS regexp_replace(penstock_moment(s), '^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})[ T].*$', '\1')
    """,
    # The earlier of two instants that a wall-clock time may be, where DuckDB takes the later: the instant with
    # the distance from UTC of the day before, if the clock shows that time then.
    """
    CREATE TEMP MACRO penstock_earlier(t, shown, before, later) AS
      CASE WHEN shown = t AND before < later THEN before ELSE later END
    """,
    """
    CREATE TEMP MACRO penstock_day_after(z) AS z + to_microseconds(86400000000)
    """,
    """
    CREATE TEMP MACRO penstock_instant(t) AS penstock_earlier(
      t, CAST(penstock_day_after(CAST(t - to_days(1) AS TIMESTAMPTZ)) AS TIMESTAMP),
      penstock_day_after(CAST(t - to_days(1) AS TIMESTAMPTZ)), CAST(t AS TIMESTAMPTZ))
    """,
    """
    CREATE TEMP MACRO penstock_instant_of(zone, t) AS penstock_earlier(
      t, timezone(zone, penstock_day_after(timezone(zone, t - to_days(1)))),
      penstock_day_after(timezone(zone, t - to_days(1))), timezone(zone, t))
    """,
    # the days of an interval move the wall clock, its rest moves the instant
    """
    CREATE TEMP MACRO penstock_moved(z, micros) AS
      z + to_days(CAST(micros // 86400000000 AS INT)) + to_microseconds(micros % 86400000000)
    """,
    # whole months from a to b as java.time counts them: days are compared after the time of day has been
    # carried
    """
    CREATE TEMP MACRO penstock_packed(d) AS (year(d) * 12 + month(d) - 1) * 32 + day(d)
    """,
    """
    CREATE TEMP MACRO penstock_carry(a, b) AS CASE
      WHEN CAST(b AS DATE) > CAST(a AS DATE) AND CAST(b AS TIME) < CAST(a AS TIME) THEN -1
      WHEN CAST(b AS DATE) < CAST(a AS DATE) AND CAST(b AS TIME) > CAST(a AS TIME) THEN 1
      ELSE 0 END
    """,
    """
    CREATE TEMP MACRO penstock_months(a, b) AS
      (penstock_packed(CAST(b AS DATE) + penstock_carry(a, b)) - penstock_packed(CAST(a AS DATE))) // 32
    """,
    # the next digit of a / b: of 10 r by way of 3 r and 9 r, for 10 r itself may not fit 128 bits where 3 r
    # does
    """
    CREATE TEMP MACRO penstock_next_digit(a, b) AS {
      'q': a.q * 10 + 3 * (3 * a.r // b) + 3 * (3 * a.r % b) // b + (3 * (3 * a.r % b) % b + a.r) // b,
      'r': (3 * (3 * a.r % b) % b + a.r) % b}
    """,
    # a / b and what is left, with that many more digits, exact however large a with these digits is: by long
    # division
    """
    CREATE TEMP MACRO penstock_divided(a, b, digits) AS
      list_reduce(range(digits), LAMBDA s, i: penstock_next_digit(s, CAST(abs(b) AS UHUGEINT)),
        {'q': CAST(abs(a // b) AS UHUGEINT), 'r': CAST(abs(a % b) AS UHUGEINT)})
    """,
    """
    CREATE TEMP MACRO penstock_cut_quotient(a, b, digits) AS
      CASE WHEN (a < 0) <> (b < 0) THEN -1 ELSE 1 END * CAST(penstock_divided(a, b, digits).q AS HUGEINT)
    """,
    """
    CREATE TEMP MACRO penstock_quotient(a, b, digits) AS
      penstock_cut_quotient(a, b, digits) + CASE
        WHEN 2 * penstock_divided(a, b, digits).r < CAST(abs(b) AS UHUGEINT) THEN 0
        WHEN (a < 0) <> (b < 0) THEN -1 ELSE 1 END
    """,
    """
    CREATE TEMP MACRO penstock_rest(a, b, digits) AS sign(a) * CAST(penstock_divided(a, b, digits).r AS HUGEINT)
    """,
)


def macros_of(text: str) -> list[str]:
    """Return what creates the macros that a statement calls, and those that they call, in the order in which
    to create them. All of them take half as long as to open DuckDB.
    """
    # a generator may write names of functions in capitals
    wanted = _NAME.findall(text.lower())
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in _bodies() and name not in found:
            found.add(name)
            wanted += _NAME.findall(_bodies()[name])
    return [body for name, body in _bodies().items() if name in found]


@functools.cache
def _bodies() -> Mapping[str, str]:
    """The macros by their names."""
    return {_NAME.findall(macro)[0]: macro for macro in MACROS}
