"""What is compared with Spark on conditions, tests and spellings that stand for others: expressions over
the columns of ``word_cases``.
"""

from __future__ import annotations

from tests.unit.engine.expressions.word_cases import COLUMNS, rows

__all__ = ["COLUMNS", "rows", "texts"]

TEXTS = """
coalesce(i, n); coalesce(s, u, 'x'); ifnull(x, y); nullif(i, n); nullif(x, y); if(b, i, n); if(x > y, s, u); nvl2(i, s, u); nvl2(x, 1, 2)
zeroifnull(i); zeroifnull(x); zeroifnull(p); zeroifnull(o); nullifzero(l); nullifzero(x); pi()
b IS TRUE; b IS NOT TRUE; b IS FALSE; (x > y) IS NOT FALSE
decode(i, 1, 'one', NULL, 'none', 7, u, 'more'); decode(s, 'a', 1L, '', 2L); decode(x, CAST('NaN' AS DOUBLE), 'nan', 0.0D, 'zero')
try_add(i, n); try_add(l, l); try_add(o, o); try_add(p, p); try_add(x, y); try_add(i, 2147483647); try_add(d, n); try_add(l, i)
try_subtract(i, n); try_subtract(l, 1); try_subtract(n, l); try_subtract(h, o); try_subtract(x, y); try_subtract(p, i)
try_multiply(i, n); try_multiply(l, l); try_multiply(l, -1); try_multiply(l, n); try_multiply(o, o); try_multiply(x, i); try_multiply(p, n)
try_divide(i, n); try_divide(x, y); try_divide(p, n); try_divide(l, 0); try_mod(i, n); try_mod(l, n); try_mod(x, y); try_mod(p, n)
s LIKE ANY ('%a%', 'H%', ''); s LIKE ALL ('%l%', 'H%'); s NOT LIKE ANY ('%a%', '%l%'); s NOT LIKE ALL ('%a%', '%l%'); s ILIKE ANY ('h%', '%Ñ%')
s LIKE ANY (u, 'H%'); s LIKE SOME ('a%', NULL)
i BETWEEN n AND 10; i NOT BETWEEN 0 AND n; s BETWEEN 'a' AND u; i IS DISTINCT FROM n; x IS NOT DISTINCT FROM y; i <=> NULL
OVERLAY(s PLACING u FROM 2); OVERLAY(s PLACING 'zz' FROM 3 FOR 2); TRIM(LEADING 'H' FROM s); TRIM(BOTH FROM s); TRIM(TRAILING 'e' FROM s)
hex(p); unix_timestamp(t); unix_timestamp(v); unix_seconds(timestamp_micros(-1500000L))
SUBSTRING(s FROM 2 FOR 3); POSITION(u IN s); datediff(DAY, t, v); date_add(MONTH, n, t); datediff(HOUR, v, t)
"""
"""What Spark and we read alike."""


def texts() -> list[str]:
    """Return the expressions."""
    return [text.strip() for line in TEXTS.strip().splitlines() for text in line.split("; ")]
