"""What is compared with Spark on numbers, bits, words, JSON and days: generated columns, and expressions
both sides read in the same words.
"""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal as D

import pyarrow as pa

from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    Decimal,
    to_arrow,
)

NAN, INF = float("nan"), float("inf")
COLUMNS: dict[str, tuple[DataType, list]] = {
    "i": (INT, [None, 0, 1, -1, 7, -7, 100, 2147483647, -2147483648]),
    "n": (INT, [None, 0, 1, 2, -3, 5, 10, 33, -1, 20]),
    "l": (BIGINT, [None, 0, 1, -5, 2**31, -(2**63), 2**63 - 1, 1700000000]),
    "h": (SMALLINT, [None, 0, 12, -12, 30000]),
    "o": (TINYINT, [None, 0, 5, -128]),
    "x": (
        DOUBLE,
        [None, NAN, INF, -INF, 0.0, -0.0, 1.5, -2.5, 0.5, 1e-7, 1e10, 123456789.125, -0.00012, 2.0, 3.25],
    ),
    "y": (DOUBLE, [None, NAN, 1.0, -3.5, 0.25, 10.0]),
    "r": (DOUBLE, [None, 0.0, 1.5, -2.5, 12345.678, -1234567.125, 0.125, 1e15, 1e-9]),
    "f": (FLOAT, [None, NAN, 0.0, -0.0, 1.5, -2.25]),
    "p": (Decimal(10, 2), [None, D("0.00"), D("1.10"), D("-2555.55"), D("99999999.99")]),
    "s": (
        STRING,
        [
            None,
            "",
            "a",
            "Hello World",
            "ñandú Élan",
            "a,b,,c",
            "日本語テキスト",
            "it's",
            "AbC-dEf_1~*",
            "x\ny",
            "😀 smile",
            "Robert",
            "Tymczak",
        ],
    ),
    "u": (STRING, [None, "", "a", "b", "World", "ñ", ",", "日", "o", "Rupert"]),
    "b": (BOOLEAN, [None, True, False]),
    "d": (
        DATE,
        [
            None,
            date(1970, 1, 1),
            date(2024, 2, 29),
            date(1969, 12, 31),
            date(2023, 1, 31),
            date(1999, 12, 31),
            date(1900, 3, 1),
        ],
    ),
    "t": (
        TIMESTAMP,
        [
            None,
            datetime(1970, 1, 1),
            datetime(2024, 2, 29, 23, 59, 59, 999999),
            datetime(1969, 12, 31, 23, 59, 59, 1),
            datetime(2013, 7, 4, 5, 15),
        ],
    ),
    "v": (
        TIMESTAMP,
        [
            None,
            datetime(2024, 1, 31, 12, 30),
            datetime(2012, 2, 29, 1, 2, 3, 456789),
            datetime(1965, 5, 5, 5, 5, 5),
            datetime(2023, 3, 31),
        ],
    ),
    "k": (STRING, [None, "0", "10", "-1", "zz", "1F", " 12 ", "9z9", "", "-"]),
    "w": (STRING, [None, "MO", "tuesday", "Wed", "SU", "friday"]),
    "j": (
        STRING,
        [
            None,
            "",
            "no json",
            "{}",
            '{"a": 1, "b": "x"}',
            '{"a": {"b": [1, 2, {"c": "ñ"}]}, "d": null}',
            "[1, 2, 3]",
            '{"a": true, "b": [ ]}',
            '"text"',
            '{"a": "q\\"uote", "b": -7}',
        ],
    ),
    "url": (
        STRING,
        [
            None,
            "http://user:pw@example.com:8080/a/b.html?x=1&y=two#frag",
            "https://example.com",
            "ftp://h/p",
            "http://h.org/?k=v",
            "mailto:a@b.c",
            "http://h/x?y=1&x=%20z",
        ],
    ),
}
ROWS = 150

TEXTS = """
sinh(y); cosh(y); tanh(x); cot(r); sec(y); csc(r); expm1(x); log1p(x); hypot(x, y); rint(x); nanvl(x, y); e()
asinh(y); acosh(y); atanh(x); factorial(n); width_bucket(r, 0.0D, 10.0D, 5); width_bucket(y, 10.0D, -10.0D, n)
i & n; i | n; i ^ n; ~i; l & i; h | o; ~o; i & 255; i | n & 3 ^ 1
shiftleft(i, n); shiftleft(l, n); shiftright(i, n); shiftright(l, 3); shiftrightunsigned(i, n); shiftrightunsigned(l, n); shiftleft(o, 2)
bit_count(i); bit_count(l); bit_count(o); bit_count(b); getbit(i, 3); bit_get(l, 0)
bin(l); bin(i); hex(l); hex(i); hex(s); hex(o); hex(unhex('4D7953514C')); unhex('414')
conv(k, 10, 16); conv(k, 16, -10); conv(k, 36, 2); conv('100', 2, 10)
crc32(s); hash(i); hash(l, s); hash(x, f, b, d, t); hash(s, u); hash(o, h, p); hash(NULL, n); xxhash64(i); xxhash64(l, s); xxhash64(x, f, b, d, t)
xxhash64(s, u, j); xxhash64(p, o); hash(j); xxhash64(url)
base64(CAST(s AS BINARY)); unbase64('SGVsbG8='); encode(s, 'UTF-8'); encode(s, 'UTF-16BE'); decode(encode(s, 'UTF-16LE'), 'UTF-16LE')
sha2(s, 224); sha2(s, 384); sha2(s, 512); sha2(s, 0); sha2(s, 256)
url_encode(s); url_decode('a%20b+c%C3%B1'); url_encode(url)
parse_url(url, 'HOST'); parse_url(url, 'PROTOCOL'); parse_url(url, 'PATH'); parse_url(url, 'QUERY'); parse_url(url, 'REF'); parse_url(url, 'FILE')
parse_url(url, 'AUTHORITY'); parse_url(url, 'USERINFO'); parse_url(url, 'QUERY', 'x'); parse_url(url, 'QUERY', u)
levenshtein(s, u); levenshtein(s, 'Hello'); levenshtein(s, u, 4); soundex(s); soundex(u)
overlay(s, u, 3); overlay(s, 'XX', 2, 1); overlay(s, u, 2, 0); overlay(s, 'zz', n, 1)
substring_index(s, ',', 2); substring_index(s, ',', -2); substring_index(s, u, n); substring_index(s, 'l', -1)
format_number(r, 2); format_number(l, 0); format_number(p, 1); format_number(i, 3); format_number(x, 4); format_number(r, n)
format_string('%s|%5d|%-6s|', s, i, u); format_string('%05d %x %+d', i, i, n); format_string('%.2f %10.3f %e', r, r, y)
format_string('%b %s %%', b, l)
format_string('%2$s %1$s', s, u); format_string('%,d', l); printf('%c', 65); format_string('%o %X', n, l); format_string('%8.3s|', s)
find_in_set(u, 'a,b,,ñ'); find_in_set(u, s); regexp_count(s, 'a|l'); regexp_count(s, '[^a-z]'); regexp_substr(s, '[a-z]+'); regexp_substr(s, 'l+o')
regexp_instr(s, 'l+'); regexp_instr(s, '[^A-Za-z]'); regexp_instr(concat('a', chr(10), 'b-ab', s), 'a.'); regexp_instr(upper(s), '^'); regexp_extract_all(s, '([a-z])([a-z])', 2); regexp_extract_all(s, '[a-z]+', 0)
get_json_object(j, '$.a'); get_json_object(j, '$.b'); get_json_object(j, '$.a.b[2].c'); get_json_object(j, '$[1]'); get_json_object(j, '$')
get_json_object(j, '$.a.b'); get_json_object(j, '$.d'); json_array_length(j); json_object_keys(j)
next_day(d, 'MO'); next_day(d, w); dayname(d); monthname(d); dayname(t); monthname(t); months_between(t, v); months_between(d, t)
months_between(t, v, false); months_between(t, v, b)
regexp_extract_all(s, '([a-z])|([0-9A-Z])', 2); regexp_extract_all('a2', '(b)?', 1)
regexp_extract(s, '([a-z])?([A-Z])?', 2); regexp_extract_all(s, '(l)(o)?', abs(n) % 3)
to_date('2020-12-31-366', 'yyyy-MM-dd-DDD'); to_date('9999-31-365', 'yyyy-dd-DDD'); to_date('12-31-365', 'MM-dd-DDD')
to_date('Dec 350 2020', 'MMM DDD yyyy'); hour(to_timestamp('13 PM', 'HH a')); hour(to_timestamp('PM', 'a')); hour(to_timestamp('05', 'hh'))
extract(second FROM t); date_part('second', v); date_part('year', t); date_part('week', d); extract(dow FROM d)
convert_timezone('UTC', 'America/New_York', t); convert_timezone('Europe/Berlin', 'Asia/Tokyo', v); convert_timezone('+02:00', 'UTC', v)
"""
"""What Spark and we read alike."""


def texts() -> list[str]:
    """Return the expressions."""
    return [text.strip() for line in TEXTS.strip().splitlines() for text in line.split("; ")]


def rows() -> pa.RecordBatch:
    """Every value of every pool, in seeded disorder."""
    generator = random.Random(20250101)
    arrays = []
    for kind, pool in COLUMNS.values():
        values = [pool[i % len(pool)] for i in range(ROWS)]
        generator.shuffle(values)
        arrays.append(pa.array(values, to_arrow(kind)))
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))
