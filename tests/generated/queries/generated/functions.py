"""Functions of many families on values that are safe for them: by the type they give, our words and, where
they are others, DuckDB's.
"""

from __future__ import annotations

from tests.generated.queries.generated.dice import Dice
from tests.generated.queries.generated.pieces import Piece, made

_TEXTS: dict[str, str | None] = {
    "lower({a}.s)": None,
    "reverse({a}.s)": None,
    "left({a}.s, 1)": None,
    "right({a}.s, 1)": None,
    "lpad({a}.s, 3, '*')": None,
    "rpad({a}.s, 2, '-')": None,
    "repeat({a}.s, 2)": None,
    "concat_ws('-', {a}.s, 'q', {a}.s)": None,
    "translate({a}.s, 'ab', 'xy')": None,
    "split_part({a}.s, 'a', 1)": None,
    "ltrim({a}.s, 'a')": None,
    "rtrim({a}.s, 'b')": None,
    "substr({a}.s, 2)": None,
    "md5({a}.s)": None,
    "hex({a}.s)": None,
    "regexp_replace({a}.s, 'a+', 'z')": "regexp_replace({a}.s, 'a+', 'z', 'g')",
    "if({a}.k > 1, {a}.s, 'n')": "CASE WHEN {a}.k > 1 THEN {a}.s ELSE 'n' END",
    "nvl2({a}.s, 'y', 'n')": "CASE WHEN {a}.s IS NULL THEN 'n' ELSE 'y' END",
    "date_format({a}.ts, 'HH:mm:ss')": "strftime({a}.ts, '%H:%M:%S')",
    "array_join(array({a}.s, 'm', {a}.s), '+')": "array_to_string([{a}.s, 'm', {a}.s], '+')",
    "split({a}.s, 'b')[1]": "string_split({a}.s, 'b')[1]",
    "named_struct('p', {a}.s, 'q', {a}.k).p": "{'p': {a}.s, 'q': {a}.k}['p']",
    "(ARRAY[{a}.s, 'c'])[2]": "[{a}.s, 'c'][2]",
    "mask({a}.s)": "regexp_replace({a}.s, '[a-z]', 'x', 'g')",
    "decode(substr(encode({a}.s, 'UTF-8') || X'7A', -1), 'UTF-8')": "CASE WHEN {a}.s IS NOT NULL THEN 'z' END",
    "hex(lpad(encode({a}.s, 'UTF-8'), 3))": "lpad(hex({a}.s), 6, '0')",
    "substr(repeat({a}.s, 4000), 3999, 2)": None,
    "array_join(transform(array({a}.s, NULL, 'z'), e -> upper(e)), '+')": "array_to_string([upper({a}.s), 'Z'], '+')",
    "CAST(time_trunc('MINUTE', CAST({a}.ts AS TIME)) AS STRING)": "strftime(date_trunc('minute', {a}.ts), '%H:%M:%S')",
}
# near the changes of a clock: the rows' times are moved to the night of 31 March 2024
_SKIPPED, _TWICE = (
    "{a}.ts + INTERVAL '90' DAY + INTERVAL '119' MINUTE",
    "{a}.ts + INTERVAL '300' DAY + INTERVAL '59' MINUTE",
)
_NUMBERS: dict[str, str | None] = {
    "length(encode({a}.s, 'UTF-8'))": "strlen({a}.s)",
    "minute(CAST({a}.ts AS TIME))": "minute({a}.ts)",
    "extract(DAY FROM make_interval(0, 0, 0, {a}.k))": "{a}.k",
    "extract(EPOCH FROM {a}.ts)": "CAST(floor(epoch({a}.ts)) AS BIGINT)",
    "try_to_number(CAST({a}.k AS STRING), '9')": "CASE WHEN {a}.k BETWEEN 0 AND 9 THEN {a}.k END",
    "map_union(map('p', 1), map('p', {a}.v))['p']": "{a}.v",
    "pmod({a}.v, 3)": "(({a}.v % 3 + 3) % 3)",
    "({a}.v & 3)": None,
    "({a}.v | 4)": None,
    "({a}.v ^ 1)": "xor({a}.v, 1)",
    "shiftleft({a}.v % 8, 2)": "(({a}.v % 8) * 4)",
    "bit_count({a}.v)": None,
    "sign({a}.v)": None,
    "least({a}.v, {a}.k, 3)": None,
    "zeroifnull({a}.v)": "coalesce({a}.v, 0)",
    "ceil({a}.x)": None,
    "floor({a}.x)": None,
    "instr({a}.s, 'b')": None,
    "ascii({a}.s)": None,
    "octet_length({a}.s)": "strlen({a}.s)",
    "year({a}.ts)": None,
    "minute({a}.ts)": None,
    "timestampdiff(SECOND, {a}.ts, TIMESTAMP '2024-01-01 00:02:00')": "date_sub('second', {a}.ts, TIMESTAMP '2024-01-01 00:02:00')",
    "size(split({a}.s, 'a'))": "len(string_split({a}.s, 'a'))",
    "array_max(array({a}.v, 2))": "list_max([{a}.v, 2])",
    "array_min(array({a}.v, {a}.k))": "list_min([{a}.v, {a}.k])",
    "sort_array(array({a}.v, 1))[1]": "list_sort([{a}.v, 1], 'ASC', 'NULLS FIRST')[1]",
    "size(array_compact(array({a}.v, {a}.k)))": "list_count([{a}.v, {a}.k])",
    "array_position(array(1, 2, {a}.v), 2)": "list_position([1, 2, {a}.v], 2)",
    "map('p', {a}.v, 'q', 2)['p']": "MAP {'p': {a}.v, 'q': 2}['p']",
    "element_at(sequence(1, 5), 2)": "2",
    "reduce(array({a}.v, CAST({a}.k AS BIGINT), NULL), CAST(0 AS BIGINT), (p, q) -> p + coalesce(q, 0))": "coalesce({a}.v, 0) + coalesce({a}.k, 0)",
    "size(filter(array({a}.v, {a}.k, NULL), e -> e > 1))": "len(list_filter([{a}.v, {a}.k, NULL], lambda e: e > 1))",
    "if(exists(array({a}.v, {a}.k, NULL), e -> e > 2), 1, 0)": "CASE WHEN {a}.v > 2 OR {a}.k > 2 THEN 1 ELSE 0 END",
    "map_values(map('p', {a}.v, 'q', {a}.k))[1]": "{a}.v",
    "size(map_filter(map('p', {a}.v, 'q', {a}.k), (n, e) -> e IS NOT NULL))": "list_count([{a}.v, {a}.k])",
    "size(array_distinct(array({a}.v, {a}.k, {a}.v, NULL, NULL)))": "1 + list_unique([{a}.v, {a}.k])",
    "flatten(array(array({a}.v, NULL), array({a}.k)))[3]": "{a}.k",
    "zip_with(array({a}.v), array(1, 2), (p, q) -> coalesce(p, 0) * 10 + coalesce(q, 0))[2]": "2",
    "length(repeat({a}.s, 5000))": None,
    "timestampdiff(DAY, {a}.ts, {a}.ts + INTERVAL '1' MONTH)": "date_diff('day', {a}.ts, {a}.ts + INTERVAL 1 MONTH)",
}
_TIMES: dict[str, str | None] = {
    "date_trunc('hour', {a}.ts)": None,
    "timestampadd(MINUTE, 2, {a}.ts)": "({a}.ts + INTERVAL 2 MINUTE)",
    "CAST(CAST({a}.ts AS DATE) AS TIMESTAMP)": None,
    "CAST(last_day(CAST({a}.ts AS DATE)) AS TIMESTAMP)": None,
    "greatest({a}.ts, TIMESTAMP '2024-01-01 00:00:30')": None,
    "CAST(date_format({a}.ts, 'yyyy-MM-dd HH:mm:ss') AS TIMESTAMP)": "date_trunc('second', {a}.ts)",
    f"from_utc_timestamp({_TWICE}, 'Europe/Berlin')": f"(({_TWICE}) AT TIME ZONE 'UTC') AT TIME ZONE 'Europe/Berlin'",
    f"to_utc_timestamp({_SKIPPED}, 'Europe/Berlin')": f"(({_SKIPPED}) AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'UTC'",
    "{a}.ts - {a}.k * INTERVAL '1' DAY": "{a}.ts - to_days({a}.k)",
    "{a}.ts + INTERVAL '1' MONTH": None,
}
FAMILIES = {"s": _TEXTS, "v": _NUMBERS, "ts": _TIMES}


def called(dice: Dice, column: str, name: str) -> Piece:
    """A call whose value has the type of a column: one used least so far."""
    family = FAMILIES[column]
    ours = dice.feature("function", {text: lambda text=text: text for text in family})
    theirs = family[ours] or ours
    ours, theirs = ours.replace("{a}", name), theirs.replace("{a}", name)
    if column == "v":
        ours, theirs = f"CAST({ours} AS BIGINT)", f"CAST({theirs} AS BIGINT)"
    return Piece("value", (ours,), (theirs,) if theirs != ours else None, f"{name}.{column}")


def calls(dice: Dice, most: int = 4) -> list[Piece]:
    """Aggregates as items of a list, some over a part of the rows only."""
    items = []
    for number, call in enumerate(dice.some(list(AGGREGATES), 1, most)):
        dice.mark(f"call: {call}")
        condition = dice.one("k = 1", "v > 1") if dice.chance(0.2) else ""
        holes = {
            "w": f" FILTER (WHERE {condition})" if condition else "",
            "n": f" AND {condition}" if condition else "",
        }
        ours = _said(call, holes)
        theirs = _said(AGGREGATES[call] or call, holes)
        items.append(made("item", f"{ours} AS a{number}", theirs=f"{theirs} AS a{number}"))
    return items


def _said(text: str, holes: dict[str, str]) -> str:
    for hole, word in holes.items():
        text = text.replace(f"<{hole}>", word)
    return text


AGGREGATES: dict[str, str | None] = {
    "count(*)<w>": None,
    "sum(v)<w>": None,
    "min(x)<w>": None,
    "max(s)<w>": None,
    "count(DISTINCT s)<w>": None,
    "avg(v)<w>": None,
    "sum(DISTINCT v)<w>": None,
    "sum(x)<w>": None,
    "min(ts)<w>": None,
    "max(ts)<w>": None,
    "count(v)<w>": None,
    "median(v)<w>": None,
    "mode(s)<w>": "list_sort(list_transform(map_entries(histogram(s)<w>), lambda e: {'n': -CAST(e.value AS BIGINT), 's': e.key}))[1]['s']",
    "listagg(s, '+')<w>": "string_agg(s, '+' ORDER BY s)<w>",
    "listagg(s, ',' ) WITHIN GROUP (ORDER BY v DESC NULLS LAST)<w>": "string_agg(s, ',' ORDER BY v DESC NULLS LAST, s)<w>",
    "array_join(collect_list(s ORDER BY k NULLS FIRST)<w>, '+')": "coalesce(string_agg(s, '+' ORDER BY k NULLS FIRST, s)<w>, '')",
    "array_join(collect_set(s)<w>, '+')": "coalesce(string_agg(DISTINCT s, '+' ORDER BY s)<w>, '')",
    "max_by(s, v)<w>": "(list(s ORDER BY v DESC, s DESC NULLS LAST) FILTER (WHERE v IS NOT NULL<n>))[1]",
    "min_by(s, v)<w>": "(list(s ORDER BY v, s NULLS FIRST) FILTER (WHERE v IS NOT NULL<n>))[1]",
    "first_value(s ORDER BY v NULLS FIRST)<w>": "(list(s ORDER BY v NULLS FIRST, s NULLS FIRST)<w>)[1]",
    "any_value(s)<w>": "min(s)<w>",
    "bit_and(v)<w>": None,
    "bit_or(v)<w>": None,
    "bit_xor(v)<w>": None,
    "bool_and(v > 1)<w>": None,
    "bool_or(v > 3)<w>": None,
    "count_if(v > 1)<w>": "count(*) FILTER (WHERE v > 1<n>)",
    "percentile(v, 0.25)<w>": "quantile_cont(v, 0.25)<w>",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY v)<w>": "quantile_disc(v, 0.5)<w>",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY v DESC)<w>": "quantile_cont(v, 0.75)<w>",
    "percentile_disc(0.25) WITHIN GROUP (ORDER BY v DESC)<w>": "-quantile_disc(-v, 0.25)<w>",
    "percentile(v, ARRAY[0.25, 0.5])<w>[2]": "quantile_cont(v, 0.5)<w>",
    "mode() WITHIN GROUP (ORDER BY v)<w>": "mode(v ORDER BY v)<w>",
    "arg_max(s, v)<w>": "(list(s ORDER BY v DESC, s DESC NULLS LAST) FILTER (WHERE v IS NOT NULL<n>))[1]",
    "arg_min(s, v)<w>": "(list(s ORDER BY v, s NULLS FIRST) FILTER (WHERE v IS NOT NULL<n>))[1]",
    "count(DISTINCT s, v)<w>": "count(DISTINCT CASE WHEN s IS NOT NULL AND v IS NOT NULL THEN row(s, v) END)<w>",
    "try_sum(v)<w>": "sum(v)<w>",
    "json_arrayagg(v ORDER BY v)<w>": "'[' || coalesce(string_agg(v::VARCHAR, ',' ORDER BY v)<w>, '') || ']'",
    "histogram(k)<w>[2]": "CAST((histogram(k)<w>)[2] AS BIGINT)",
    "histogram_numeric(v, 1000)<w>[1].y": "CAST((map_values(histogram(v)<w>))[1] AS DOUBLE)",
    "approx_count_distinct(v)<w>": "count(DISTINCT v)<w>",
    "round(var_pop(v)<w> * 0.9871314142, 5)": None,  # times what leaves no tie for the last bit to decide
    "round(corr(v, k)<w>, 5)": "CASE WHEN var_pop(v) FILTER (WHERE k IS NOT NULL<n>) > 0 AND var_pop(k) FILTER (WHERE v IS NOT NULL<n>) > 0"
    " THEN round(corr(v, k)<w>, 5) END",
}
