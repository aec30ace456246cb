"""What is compared with Spark on arrays, maps and rows: generated columns, and expressions both sides read
in the same words.
"""

from __future__ import annotations

import random
from datetime import date, datetime

import pyarrow as pa

from penstock.catalog.catalog import Catalog
from penstock.catalog.schema import Field
from penstock.catalog.settings import Settings
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    Map,
    Row,
    to_arrow,
)
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.query import bind_query
from penstock.planner.binder.scope import Scope, ScopeColumn
from penstock.planner.expressions.nodes import Expression
from penstock.planner.parser.query_parser import parse_expression

NAN = float("nan")
_PAIR = Row((("a", INT), ("b", STRING)))
COLUMNS: dict[str, tuple[DataType, list]] = {
    "a": (
        Array(INT),
        [None, [], [1], [1, 2, None], [3, 3, 1, None, None, 3], [None], [2, -5, 7, 2], [2147483647, 0]],
    ),
    "c": (Array(INT), [None, [], [1, 3], [None], [7, None, 7, 2], [9]]),
    "l": (Array(BIGINT), [None, [], [1, 2**40], [3, None]]),
    "x": (Array(DOUBLE), [None, [], [NAN, 1.5, None], [0.0, -0.0, 2.5], [float("inf"), NAN, NAN, -1.0]]),
    "y": (Array(DOUBLE), [None, [0.0], [NAN], [-0.0, 1.5], [None, 2.5]]),
    "s": (Array(STRING), [None, [], ["a", "b", "a"], ["", None, "ñ"], ["z", "日本"], [None, None]]),
    "u": (Array(STRING), [None, ["a"], [], [None, "z"], ["", "b"]]),
    "p": (Array(BOOLEAN), [None, [], [True, False, None], [False]]),
    "aa": (
        Array(Array(INT)),
        [None, [], [[1, 2], [], [3]], [[1], None], [[None], [4, 4]], [[1, 2], [1, 2], [1]]],
    ),
    "ra": (
        Array(_PAIR),
        [
            None,
            [],
            [{"a": 1, "b": "x"}, None, {"a": 1, "b": None}],
            [{"a": 2, "b": "y"}, {"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
        ],
    ),
    "m": (Map(STRING, INT), [None, [], [("k", 1), ("j", None)], [("ñ", 5)], [("", 7), ("k", 2), ("z", 3)]]),
    "w": (Map(STRING, INT), [None, [], [("q", 9)], [("r", None), ("t", 1)]]),
    "im": (Map(INT, STRING), [None, [], [(1, "one"), (2, None)], [(-1, "minus")]]),
    "r": (_PAIR, [None, {"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": None}, {"a": 2, "b": "a"}]),
    "q": (_PAIR, [None, {"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": "y"}]),
    "n": (INT, [None, 1, 2, 3, -1, -2]),
    "i": (INT, [None, 0, 1, 5, 3, -4]),
    "k": (STRING, [None, "k", "", "a", "ñ", "zz"]),
    "t": (STRING, [None, "", "a,b,,c", "a1b22c3", "k:1,j:2", "x y  z", "a.b|c", ",,", "ñ-é", "abc"]),
    "d": (DATE, [None, date(2024, 1, 31), date(2024, 2, 28), date(2023, 12, 30)]),
    "e": (DATE, [None, date(2024, 3, 2), date(2024, 1, 31), date(2024, 2, 1)]),
    "v": (TIMESTAMP, [None, datetime(2024, 1, 31, 12, 30), datetime(2024, 2, 1)]),
}
ROWS = 120

TEXTS = """
size(a); cardinality(m); size(s); array_size(aa)
array_contains(a, n); array_contains(a, 3); array_contains(x, CAST('NaN' AS DOUBLE)); array_contains(s, k); array_contains(aa, array(1, 2))
array_contains(l, n)
array_position(a, n); array_position(s, k); array_position(x, 0.0D); array_position(a, 3); array_position(aa, array(1))
array_remove(a, n); array_remove(s, 'a'); array_remove(a, 3); array_remove(x, 0.0D)
array_append(a, n); array_append(s, k); array_append(a, CAST(NULL AS INT)); array_prepend(a, n); array_prepend(s, 'p')
array_distinct(a); array_distinct(s); array_distinct(x); array_distinct(aa); array_distinct(ra)
array_compact(a); array_compact(s); array_compact(ra)
sort_array(a); sort_array(a, false); sort_array(s); sort_array(x); sort_array(x, false); sort_array(aa); sort_array(ra); sort_array(p)
sort_array(ra, false)
array_sort(a); array_sort(s); array_sort(x); array_sort(aa); array_sort(ra)
array_join(s, '-'); array_join(s, ',', '?'); array_join(a, '+', 'null'); array_join(s, k); array_join(s, '', k)
array_min(a); array_max(a); array_min(x); array_max(x); array_min(s); array_max(s); array_max(aa); array_min(ra); array_max(p)
array_union(a, c); array_intersect(a, c); array_except(a, c); arrays_overlap(a, c)
array_union(x, y); array_intersect(x, y); array_except(x, y); arrays_overlap(x, y)
array_union(s, u); array_intersect(s, u); array_except(s, u); arrays_overlap(s, u); array_union(a, l)
array_repeat(n, 2); array_repeat(k, i); array_repeat(a, 2); array_repeat('x', -1)
concat(a, c); concat(a, l); concat(a, c, a); a || c; concat(s, u); concat(array(1), array(2, 3))
slice(a, 1, 2); slice(a, -2, 2); slice(a, n, 2); slice(s, 2, 10); slice(a, -5, 2); slice(a, 2, 0)
flatten(aa); reverse(a); reverse(s); reverse(aa); reverse(k)
sequence(1, 5); sequence(n, 4); sequence(5, n); sequence(n, n); sequence(n, 10, 4); sequence(10, n, -3); sequence(1L, 3L)
sequence(d, e); sequence(d, date'2025-03-01', interval 1 month); sequence(date'2024-01-05', date'2024-01-01', interval '-2' day)
sequence(v, timestamp_ntz'2024-02-02 00:00:00', interval 7 hour); sequence(v, timestamp_ntz'2024-09-30 12:30:00', interval '2' month)
try_element_at(a, n); try_element_at(s, n); try_element_at(m, k); element_at(m, k); element_at(im, n); get(a, i); get(s, n); get(a, 0)
element_at(array(1, 2, 3), coalesce(n, 1)); element_at(array(4, 5, 6), -1)
map_keys(m); map_values(m); map_entries(m); map_contains_key(m, k); map_contains_key(im, n); map_contains_key(m, 'k')
map_from_arrays(array('a', 'b'), array(n, i)); map_from_entries(map_entries(m)); map_concat(m, w); map_concat(m)
map_from_entries(array(named_struct('k', 1, 'v', 'x'), named_struct('k', 2, 'v', k)))
str_to_map(nullif(t, ',,')); str_to_map(t, ' ', '1'); str_to_map('a:1,b:2', ',', ':')
split(t, ','); split(t, '[0-9]+'); split(t, ''); split(t, ',', 2); split(t, ' +'); split(t, '[.|]'); split(t, ',', 0); split(t, '', 2)
split(t, ',', 1)
array(n, i); array(1, 2.5D); array(n, NULL); map('a', n, 'b', i); map(1, k); array(a, c)
struct(n, k); struct(n + 1, k); named_struct('x', n, 'y', a); struct(r, n); struct(1, 2)
r.a; r.b; struct(n, k).k; named_struct('x', r).x.b
a = c; a <> c; a < c; a <= c; a >= c; x = y; x < y; s = u; s > u; r = q; r <> q; r < q; r >= q; a <=> c; r <=> q
r IN (q, named_struct('a', 1, 'b', 'x')); greatest(a, c); least(r, q); aa = array(array(1, 2), array(1, 2), array(1))
struct(n, i) = struct(1, 0); named_struct('a', n, 'b', k) = r
CAST(a AS STRING); CAST(s AS STRING); CAST(m AS STRING); CAST(r AS STRING); CAST(x AS STRING); CAST(aa AS STRING); CAST(ra AS STRING)
CAST(im AS STRING)
CAST(a AS ARRAY<STRING>); CAST(a AS ARRAY<DOUBLE>); CAST(r AS STRUCT<x: BIGINT, y: STRING>); CAST(m AS MAP<STRING, DOUBLE>)
CAST(l AS ARRAY<DECIMAL(20, 1)>)
TRY_CAST(s AS ARRAY<INT>); TRY_CAST(array('1', k) AS ARRAY<INT>); CAST(array(d, e) AS STRING); CAST(array('1', '2') AS ARRAY<INT>)
coalesce(a, c); CASE WHEN n > 0 THEN a ELSE c END; if(n = 1, r, q); a IS NULL; coalesce(r, q).a; CASE WHEN n > 0 THEN m END
"""
"""What Spark and we read alike."""


def texts() -> list[str]:
    """Return the expressions."""
    return [text.strip() for line in TEXTS.strip().splitlines() for text in line.split("; ")]


def rows() -> pa.RecordBatch:
    """Every value of every pool, in seeded disorder."""
    generator = random.Random(20241117)
    arrays = []
    for kind, pool in COLUMNS.values():
        values = [pool[i % len(pool)] for i in range(ROWS)]
        generator.shuffle(values)
        arrays.append(pa.array(values, to_arrow(kind)))
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))


def bound(text: str, columns: dict[str, tuple[DataType, list]] | None = None) -> Expression:
    """Return an expression over the rows (of these ``columns``), typed."""
    named = enumerate((columns or COLUMNS).items())
    scope = Scope(tuple(ScopeColumn(i, Field(name, kind, True)) for i, (name, (kind, _)) in named))
    context = BindContext(Catalog(), Settings(), bind_query)
    return ExpressionBinder(scope, context, "SELECT").bind(parse_expression(text))
