"""A call of each scalar function over columns, and DuckDB's own call where it has one with the same meaning."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class FunctionCall:
    """``ours`` over the columns of ``bench.functions``. ``duckdb`` is ``None`` where DuckDB has no such
    function, and ``""`` where its call is the same text.
    """

    ours: str
    duckdb: str | None = ""

    @property
    def theirs(self) -> str | None:
        """DuckDB's text."""
        return self.ours if self.duckdb == "" else self.duckdb


def _same(*calls: str) -> dict[str, FunctionCall]:
    # the function's name is that of the call
    return {call.split("(")[0]: FunctionCall(call) for call in calls}


def _only(*calls: str) -> dict[str, FunctionCall]:
    return {call.split("(")[0]: FunctionCall(call, None) for call in calls}


NUMBER_CALLS: dict[str, FunctionCall] = {
    "add": FunctionCall("i + j"),
    "subtract": FunctionCall("i - j"),
    "multiply": FunctionCall("i * j"),
    "divide": FunctionCall("d / e"),
    "div": FunctionCall("i DIV j", "i // j"),
    "mod": FunctionCall("i % j"),
    "negate": FunctionCall("-i"),
    "equal": FunctionCall("i = j"),
    "not_equal": FunctionCall("i <> j"),
    "less": FunctionCall("i < j"),
    "less_equal": FunctionCall("i <= j"),
    "greater": FunctionCall("d > e"),
    "greater_equal": FunctionCall("d >= e"),
    "null_safe_equal": FunctionCall("i <=> j", "i IS NOT DISTINCT FROM j"),
    "and": FunctionCall("b AND c"),
    "or": FunctionCall("b OR c"),
    "not": FunctionCall("NOT b"),
    "is_null": FunctionCall("o IS NULL"),
    "is_not_null": FunctionCall("o IS NOT NULL"),
    "is_true": FunctionCall("b IS TRUE", "b IS NOT DISTINCT FROM TRUE"),
    "is_false": FunctionCall("b IS FALSE", "b IS NOT DISTINCT FROM FALSE"),
    "in": FunctionCall("j IN (1, 20, 300)"),
    "if": FunctionCall("if(b, i, j)"),
    "nvl2": FunctionCall("nvl2(o, i, j)", "CASE WHEN o IS NOT NULL THEN i ELSE j END"),
    "zeroifnull": FunctionCall("zeroifnull(o)", "coalesce(o, 0)"),
    "nullifzero": FunctionCall("nullifzero(j)", "nullif(j, 0)"),
    "pmod": FunctionCall("pmod(i, j)", "((i % j) + j) % j"),
    "log": FunctionCall("log(2, d)"),
    "pow": FunctionCall("pow(d, e)"),
    "is_nan": FunctionCall("is_nan(d)", "isnan(d)"),
    "acosh": FunctionCall("acosh(d + 1)"),
    "sec": FunctionCall("sec(d)", "1 / cos(d)"),
    "csc": FunctionCall("csc(d)", "1 / sin(d)"),
    "expm1": FunctionCall("expm1(d)", "exp(d) - 1"),
    "log1p": FunctionCall("log1p(d)", "ln(1 + d)"),
    "hypot": FunctionCall("hypot(d, e)", "sqrt(d * d + e * e)"),
    "rint": FunctionCall("rint(d)", "round_even(d, 0)"),
    "nanvl": FunctionCall("nanvl(d, e)", "CASE WHEN isnan(d) THEN e ELSE d END"),
    "bround": FunctionCall("bround(d, 2)", "round_even(d, 2)"),
    "factorial": FunctionCall("factorial(CAST(j % 20 AS INT))", "factorial(CAST(j % 20 AS INT))"),
    "shiftleft": FunctionCall("shiftleft(j, 4)", "j << 4"),
    "shiftright": FunctionCall("shiftright(i, 4)", "i >> 4"),
    "bitwise_and": FunctionCall("i & j"),
    "bitwise_or": FunctionCall("i | j"),
    "bitwise_xor": FunctionCall("i ^ j", "xor(i, j)"),
    "bitwise_not": FunctionCall("~i"),
    "getbit": FunctionCall("getbit(i, 3)", "(i >> 3) & 1"),
    "width_bucket": FunctionCall("width_bucket(d, 0, 1, 50)", None),
    "e": FunctionCall("e() * d", "exp(1) * d"),
    "pi": FunctionCall("pi() * d"),
    "try_mod": FunctionCall("try_mod(i, j)", None),
    "hash": FunctionCall("hash(i)", None),
    "xxhash64": FunctionCall("xxhash64(i)", None),
    **_only(
        "try_add(i, j)",
        "try_subtract(i, j)",
        "try_multiply(i, j)",
        "try_divide(i, j)",
        "shiftrightunsigned(i, 4)",
    ),
    **_same(
        "coalesce(o, i)",
        "nullif(i, j)",
        "greatest(i, j)",
        "least(i, j)",
        "abs(i)",
        "ceil(d)",
        "floor(d)",
        "round(d, 2)",
        "sign(d)",
        "sqrt(d)",
        "cbrt(d)",
        "exp(d)",
        "ln(d)",
        "log10(d)",
        "log2(d)",
        "sin(d)",
        "cos(d)",
        "tan(d)",
        "asin(d)",
        "acos(d)",
        "atan(d)",
        "atan2(d, e)",
        "degrees(d)",
        "radians(d)",
        "sinh(d)",
        "cosh(d)",
        "tanh(d)",
        "asinh(d)",
        "atanh(d)",
        "cot(d)",
        "bit_count(i)",
    ),
}

TEXT_CALLS: dict[str, FunctionCall] = {
    "like": FunctionCall("s LIKE '%item%7'"),
    "ilike": FunctionCall("s ILIKE '%ITEM%7'"),
    "concat_op": FunctionCall("s || t"),
    "ltrim": FunctionCall("ltrim(s, 'h')"),
    "rtrim": FunctionCall("rtrim(s, '7')"),
    "octet_length": FunctionCall("octet_length(s)", "strlen(s)"),
    "substr": FunctionCall("substr(s, 2, 8)"),
    "space": FunctionCall("space(CAST(j % 10 AS INT))", "repeat(' ', j % 10)"),
    "repeat": FunctionCall("repeat(t, 3)"),
    "chr": FunctionCall("chr(CAST(65 + j % 26 AS INT))"),
    "overlay": FunctionCall("overlay(s, 'XX', 2, 3)", "left(s, 1) || 'XX' || substr(s, 5)"),
    "split_index": FunctionCall("split_index(s, '/', 3)", "split_part(s, '/', 4)"),
    "substring_index": FunctionCall("substring_index(s, '/', 3)", None),
    "format_number": FunctionCall("format_number(d, 2)", "format('{:,.2f}', d)"),
    "format_string": FunctionCall("format_string('%s has %d', t, i)", "printf('%s has %d', t, i)"),
    "rlike": FunctionCall("s RLIKE 'item/[0-9]+7$'", "regexp_matches(s, 'item/[0-9]+7$')"),
    "regexp_replace": FunctionCall(
        "regexp_replace(s, '[0-9]+', '#')", "regexp_replace(s, '[0-9]+', '#', 'g')"
    ),
    "regexp_extract": FunctionCall("regexp_extract(s, 'item/([0-9]+)', 1)"),
    "regexp_extract_all": FunctionCall("regexp_extract_all(s, '[0-9]+', 0)"),
    "regexp_count": FunctionCall("regexp_count(s, '[0-9]+')", "len(regexp_extract_all(s, '[0-9]+'))"),
    "regexp_substr": FunctionCall("regexp_substr(s, '[0-9]+')", "regexp_extract(s, '[0-9]+')"),
    "regexp_instr": FunctionCall("regexp_instr(s, '[0-9]+')", None),
    "split": FunctionCall("split(s, '/')", "string_split(s, '/')"),
    "find_in_set": FunctionCall("find_in_set(t, 'a,b,word-17')", None),
    "sha2": FunctionCall("sha2(s, 256)", "sha256(s)"),
    "soundex": FunctionCall("soundex(t)", None),
    "initcap": FunctionCall("initcap(s)", None),
    "position": FunctionCall("position('item' IN s)"),
    "contains": FunctionCall("contains(s, 'item')"),
    "crc32": FunctionCall("crc32(s)", None),
    "base64": FunctionCall("base64(s)", "base64(encode(s))"),
    "unbase64": FunctionCall("unbase64(q)", "from_base64(q)"),
    "hex": FunctionCall("hex(s)"),
    "unhex": FunctionCall("unhex(x)"),
    "bin": FunctionCall("bin(i)"),
    "conv": FunctionCall("conv(x, 16, 10)", None),
    "encode": FunctionCall("encode(s, 'UTF-8')", "encode(s)"),
    "decode": FunctionCall("decode(unhex(x), 'UTF-8')", "decode(unhex(x))"),
    "url_encode": FunctionCall("url_encode(s)"),
    "url_decode": FunctionCall("url_decode(s)"),
    "parse_url": FunctionCall("parse_url(s, 'HOST')", None),
    "str_to_map": FunctionCall("str_to_map(t, '&', '=')", None),
    **_same(
        "upper(s)",
        "lower(s)",
        "trim(s)",
        "length(s)",
        "left(s, 8)",
        "right(s, 8)",
        "concat(s, t, s)",
        "concat_ws('-', s, t)",
        "replace(s, 'item', '+')",
        "translate(s, 'abc', 'xyz')",
        "lpad(t, 12, '0')",
        "rpad(t, 12, '.')",
        "reverse(s)",
        "instr(s, 'item')",
        "split_part(s, '/', 4)",
        "starts_with(s, 'https')",
        "ends_with(s, '7')",
        "ascii(s)",
        "md5(s)",
        "sha1(s)",
        "levenshtein(t, 'word-17')",
    ),
}

JSON_CALLS: dict[str, FunctionCall] = {
    "parse_json": FunctionCall("parse_json(js)", "js::JSON"),
    "try_parse_json": FunctionCall("try_parse_json(js)", "try_cast(js AS JSON)"),
    "variant_at": FunctionCall("parse_json(js):a.b", None),
    "is_variant_null": FunctionCall("is_variant_null(CAST(t AS VARIANT))", None),
    "schema_of_variant": FunctionCall("schema_of_variant(CAST(t AS VARIANT))", None),
    "get_json_object": FunctionCall("get_json_object(js, '$.a.b')", "js->>'$.a.b'"),
    "json_value": FunctionCall("json_value(js, '$.n')", "js->>'$.n'"),
    "json_query": FunctionCall("json_query(js, '$.a')", "js->'$.a'"),
    "json_exists": FunctionCall("json_exists(js, '$.n')"),
    "json_array_length": FunctionCall("json_array_length(ja)"),
    "json_length": FunctionCall("json_length(js)", None),
    "json_object_keys": FunctionCall("json_object_keys(js)", "json_keys(js)"),
    "is_json": FunctionCall("is_json(js)", "json_valid(js)"),
    "from_json": FunctionCall("from_json(js, 'n BIGINT')", 'from_json(js, \'{"n": "BIGINT"}\')'),
    "to_json": FunctionCall("to_json(named_struct('a', i, 'b', t))", "to_json({'a': i, 'b': t})"),
    "schema_of_json": FunctionCall("schema_of_json('{\"a\": 1}')", None),
    "json_object": FunctionCall("json_object(KEY 'a' VALUE i)", "json_object('a', i)"),
    "json_array": FunctionCall("json_array(i, t)"),
}

TIME_CALLS: dict[str, FunctionCall] = {
    "year": FunctionCall("year(ts)"),
    "quarter": FunctionCall("quarter(ts)"),
    "month": FunctionCall("month(ts)"),
    "day": FunctionCall("day(ts)"),
    "hour": FunctionCall("hour(ts)"),
    "minute": FunctionCall("minute(ts)"),
    "second": FunctionCall("second(ts)"),
    "exact_second": FunctionCall("extract(second FROM ts)"),
    "dayofweek": FunctionCall("dayofweek(ts)"),
    "weekday": FunctionCall("weekday(ts)", "isodow(ts) - 1"),
    "dayofyear": FunctionCall("dayofyear(ts)"),
    "weekofyear": FunctionCall("weekofyear(ts)"),
    "date_trunc": FunctionCall("date_trunc('HOUR', ts)"),
    "trunc": FunctionCall("trunc(dt, 'MONTH')", "date_trunc('month', dt)"),
    "date_format": FunctionCall("date_format(ts, 'yyyy-MM-dd HH:mm')", "strftime(ts, '%Y-%m-%d %H:%M')"),
    "to_timestamp": FunctionCall(
        "to_timestamp(tt, 'yyyy-MM-dd HH:mm:ss')", "strptime(tt, '%Y-%m-%d %H:%M:%S')"
    ),
    "to_timestamp_ltz": FunctionCall("to_timestamp_ltz(i, 3)", "make_timestamp(i * 1000)"),
    "to_date": FunctionCall(
        "to_date(tt, 'yyyy-MM-dd HH:mm:ss')", "CAST(strptime(tt, '%Y-%m-%d %H:%M:%S') AS DATE)"
    ),
    "make_timestamp": FunctionCall("make_timestamp(2024, 3, 5, n % 24, n % 60, 30)"),
    "make_date": FunctionCall("make_date(2024, n % 12 + 1, n % 28 + 1)"),
    "timestampdiff": FunctionCall(
        "timestampdiff(HOUR, TIMESTAMP '2024-01-01 00:00:00', ts)",
        "datesub('hour', TIMESTAMP '2024-01-01', ts)",
    ),
    "timestampadd": FunctionCall("timestampadd(HOUR, n, ts)", "ts + to_hours(n)"),
    "datediff": FunctionCall("datediff(dt, DATE '2024-02-28')", "dt - DATE '2024-02-28'"),
    "date_add": FunctionCall("date_add(dt, n)", "dt + n"),
    "date_sub": FunctionCall("date_sub(dt, n)", "dt - n"),
    "add_months": FunctionCall("add_months(dt, n % 10)", "dt + to_months(n % 10)"),
    "last_day": FunctionCall("last_day(dt)"),
    "unix_timestamp": FunctionCall(
        "unix_timestamp(tt, 'yyyy-MM-dd HH:mm:ss')", "epoch(strptime(tt, '%Y-%m-%d %H:%M:%S'))"
    ),
    "from_unixtime": FunctionCall(
        "from_unixtime(i % 4000000000)",
        "strftime(make_timestamp(i % 4000000000 * 1000000), '%Y-%m-%d %H:%M:%S')",
    ),
    "timestamp_seconds": FunctionCall("timestamp_seconds(i)", "make_timestamp(i * 1000000)"),
    "timestamp_millis": FunctionCall("timestamp_millis(i)", "make_timestamp(i * 1000)"),
    "timestamp_micros": FunctionCall("timestamp_micros(i)", "make_timestamp(i)"),
    "unix_seconds": FunctionCall("unix_seconds(tz)", "epoch(tz)"),
    "unix_millis": FunctionCall("unix_millis(tz)", "epoch_ms(tz)"),
    "unix_micros": FunctionCall("unix_micros(tz)", "epoch_us(tz)"),
    "unix_date": FunctionCall("unix_date(dt)", "dt - DATE '1970-01-01'"),
    "date_from_unix_date": FunctionCall("date_from_unix_date(n)", "DATE '1970-01-01' + n"),
    "current_timestamp": FunctionCall("current_timestamp() > tz", "now() > tz"),
    "proctime": FunctionCall("proctime() > tz", None),
    "localtimestamp": FunctionCall("localtimestamp() > ts", None),
    "current_date": FunctionCall("current_date() > dt"),
    "next_day": FunctionCall("next_day(dt, 'MON')", None),
    "dayname": FunctionCall("dayname(dt)"),
    "monthname": FunctionCall("monthname(dt)"),
    "months_between": FunctionCall("months_between(ts, TIMESTAMP '2024-02-29 00:00:00')", None),
    "from_utc_timestamp": FunctionCall(
        "from_utc_timestamp(ts, 'Europe/Berlin')", "timezone('Europe/Berlin', timezone('UTC', ts))"
    ),
    "to_utc_timestamp": FunctionCall(
        "to_utc_timestamp(ts, 'Europe/Berlin')", "timezone('UTC', timezone('Europe/Berlin', ts))"
    ),
    "convert_timezone": FunctionCall(
        "convert_timezone('Europe/Berlin', 'Asia/Tokyo', ts)",
        "timezone('Asia/Tokyo', timezone('Europe/Berlin', ts))",
    ),
    "at_time_zone": FunctionCall("ts AT TIME ZONE 'Europe/Berlin'"),
}

NESTED_CALLS: dict[str, FunctionCall] = {
    "array": FunctionCall("array(i, j)", "[i, j]"),
    "map": FunctionCall("map('a', i, 'b', j)", "MAP {'a': i, 'b': j}"),
    "struct": FunctionCall("struct(i, t)", "row(i, t)"),
    "named_struct": FunctionCall("named_struct('x', i, 'y', t)", "{'x': i, 'y': t}"),
    "field": FunctionCall("r.x"),
    "element": FunctionCall("xs[1]", "xs[2]"),
    "element_at": FunctionCall("element_at(m, 'b')", "m['b']"),
    "try_element_at": FunctionCall("try_element_at(xs, 2)", "xs[2]"),
    "get": FunctionCall("get(xs, 1)", "xs[2]"),
    "size": FunctionCall("size(xs)", "len(xs)"),
    "array_contains": FunctionCall("array_contains(xs, j)", "list_contains(xs, j)"),
    "array_position": FunctionCall("array_position(xs, j)", "list_position(xs, j)"),
    "array_remove": FunctionCall("array_remove(xs, j)", "list_filter(xs, lambda x: x <> j)"),
    "array_append": FunctionCall("array_append(xs, j)", "list_append(xs, j)"),
    "array_prepend": FunctionCall("array_prepend(xs, j)", "list_prepend(j, xs)"),
    "array_distinct": FunctionCall("array_distinct(xs)", "list_distinct(xs)"),
    "array_compact": FunctionCall("array_compact(xs)", "list_filter(xs, lambda x: x IS NOT NULL)"),
    "sort_array": FunctionCall("sort_array(xs)", "list_sort(xs)"),
    "array_sort": FunctionCall("array_sort(xs)", "list_sort(xs)"),
    "array_join": FunctionCall("array_join(ws, '-')", "array_to_string(ws, '-')"),
    "array_min": FunctionCall("array_min(xs)", "list_min(xs)"),
    "array_max": FunctionCall("array_max(xs)", "list_max(xs)"),
    "array_union": FunctionCall("array_union(xs, ys)", "list_distinct(list_concat(xs, ys))"),
    "array_intersect": FunctionCall("array_intersect(xs, ys)", "list_intersect(xs, ys)"),
    "array_except": FunctionCall("array_except(xs, ys)", None),
    "arrays_overlap": FunctionCall("arrays_overlap(xs, ys)", "list_has_any(xs, ys)"),
    "array_repeat": FunctionCall("array_repeat(t, 2)", "[t, t]"),
    "slice": FunctionCall("slice(xs, 2, 2)", "xs[2:3]"),
    "flatten": FunctionCall("flatten(array(xs, ys))", "flatten([xs, ys])"),
    "sequence": FunctionCall("sequence(1, n % 5 + 1)", "range(1, n % 5 + 2)"),
    "map_keys": FunctionCall("map_keys(m)"),
    "map_values": FunctionCall("map_values(m)"),
    "map_entries": FunctionCall("map_entries(m)"),
    "map_contains_key": FunctionCall("map_contains_key(m, 'b')", "map_contains(m, 'b')"),
    "map_from_arrays": FunctionCall(
        "map_from_arrays(array('a', 'b'), array(i, j))", "map(['a', 'b'], [i, j])"
    ),
    "map_from_entries": FunctionCall(
        "map_from_entries(array(struct(t, i)))", "map_from_entries([row(t, i)])"
    ),
    "map_concat": FunctionCall("map_concat(m, map('c', i))", "map_concat(m, MAP {'c': i})"),
    "transform": FunctionCall("transform(xs, x -> x * 10)", "list_transform(xs, lambda x: x * 10)"),
    "filter": FunctionCall("filter(xs, x -> x > 500)", "list_filter(xs, lambda x: x > 500)"),
    "exists": FunctionCall("exists(xs, x -> x > 500)", None),
    "forall": FunctionCall("forall(xs, x -> x > 500)", None),
    "aggregate": FunctionCall(
        "aggregate(xs, CAST(0 AS BIGINT), (a, x) -> a + x)", "list_reduce(xs, lambda a, x: a + x, 0::BIGINT)"
    ),
    "zip_with": FunctionCall("zip_with(xs, ys, (x, y) -> x + y)", None),
    "map_filter": FunctionCall("map_filter(m, (k, v) -> v > 500)", None),
    "transform_keys": FunctionCall("transform_keys(m, (k, v) -> upper(k))", None),
    "transform_values": FunctionCall("transform_values(m, (k, v) -> v * 10)", None),
}
