"""Texts too odd or too long to stand in a golden file: each by a name, made when it is run."""

from __future__ import annotations

from collections.abc import Callable

ONE = "(VALUES (1)) AS t (a)"


def _nested(begin: str, inside: str, end: str) -> Callable[[int], str]:
    return lambda depth: "SELECT " + begin * depth + inside + end * depth


def _chained(first: str, word: str) -> Callable[[int], str]:
    return lambda count: first + word * count


def _names(count: int) -> str:
    parts = ", ".join(f"q{i} AS (SELECT * FROM {'q' + str(i - 1) if i else ONE})" for i in range(count))
    return f"WITH {parts} SELECT * FROM q{count - 1}"


DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": _nested("(", "1", ")"),
    "cases": _nested("CASE WHEN TRUE THEN ", "1", " END"),
    "functions": _nested("abs(", "1", ")"),
    "subqueries": lambda depth: "SELECT * FROM " + "(SELECT * FROM " * depth + ONE + ") AS t" * depth,
    "scalar subqueries": _nested("(SELECT ", "1", ")"),
    "names of WITH": _names,
    "unions": _chained("SELECT 1 AS a", " UNION ALL SELECT 1"),
    "sums": _chained("SELECT 1", " + 1"),
    "conjunctions": _chained(f"SELECT a FROM {ONE} WHERE TRUE", " AND a = 1"),
    "minus signs": _nested("- ", "1", ""),
    "negations": _nested("NOT ", "TRUE", ""),
    "casts": _nested("CAST(", "1", " AS INT)"),
    "arrays": _nested("ARRAY[", "1", "]"),
}
DEPTHS = (49, 1_000, 20_000)
# long, not deep: a thousand are within the limits, so many are refused for their length
BROAD = {"names of WITH": 100_000, "unions": 100_000, "conjunctions": 100_000}

TEXTS: dict[str, str] = {
    **{f"{depth} {name}": make(depth) for name, make in DEEP.items() for depth in DEPTHS[1:] if name not in BROAD},
    **{f"{count} {name}": DEEP[name](count) for name, count in BROAD.items()},
    "a statement of 10 MB": "SELECT '" + "x" * 10_000_000 + "'",
    "a list of 200,000 values": f"SELECT a FROM {ONE} WHERE a IN ({', '.join(map(str, range(200_000)))})",
    "a NUL byte": "SELECT 1 AS a\0, 2 AS b",
    "smart double quotes": "SELECT \u201ca\u201d FROM " + ONE,
    "smart single quotes": "SELECT \u2018a\u2019",
    "a smart apostrophe in a string": "SELECT nope FROM (VALUES ('it\u2019s')) AS t (a)",
    "full-width letters": "\uff33\uff25\uff2c\uff25\uff23\uff34 1",
    "full-width digits": "SELECT \uff11 AS a",
    "full-width parentheses": f"SELECT count\uff08*\uff09 FROM {ONE}",
    "a full-width comma": "SELECT 1\uff0c 2",
    "a right-to-left mark": "SELECT \u200fa FROM " + ONE,
    "a right-to-left override": "SELECT a\u202e FROM " + ONE,
    "a zero-width space": "SELECT\u200b a FROM " + ONE,
    "a non-breaking space": "SELECT\u00a0nope FROM " + ONE,
    "a BOM in the middle": "SELECT 1;\ufeff SELECT nope FROM " + ONE,
    "a BOM, then an error": "\ufeffSELECT nope FROM " + ONE,
    "carriage returns": "SELECT 1 AS a,\r\n  nope\r\nFROM " + ONE,
    "tabs before the culprit": "SELECT 1 AS a,\t\t nope FROM " + ONE,
    "wide letters before the culprit": "SELECT '\u6f22\u5b57\U0001f600' AS a, nope FROM " + ONE,
    "an unpaired surrogate": "SELECT '\ud800' + 1",
    "a string that does not end": "SELECT 'abc FROM " + ONE,
    "a name that does not end": 'SELECT "abc FROM ' + ONE,
    "a backtick that does not end": "SELECT `abc FROM " + ONE,
    "a comment that does not end": "SELECT 1 /* abc FROM " + ONE,
    "a name of 64,000 letters": "SELECT " + "a" * 64_000 + " FROM " + ONE,
    "a table of 64,000 letters": "SELECT 1 FROM " + "t" * 64_000,
    "a number of 64,000 digits": "SELECT " + "9" * 64_000,
    "a name with quotes": 'SELECT "a""b" FROM ' + ONE,
    "a name that is a path": 'SELECT 1 FROM "../etc/passwd"',
    "a table that is a path": "CREATE TABLE \"../t\" (a INT) WITH ('connector' = 'nope')",
    "an empty name": 'SELECT "" FROM ' + ONE,
    "a reserved word for a table": "SELECT * FROM order",
    "a reserved word for a column": "SELECT 1 AS select",
    "the same name twice": "SELECT a.x FROM (SELECT 1 AS x) AS a, (SELECT 2 AS x) AS a",
    "10,000 columns of one name": "SELECT " + ", ".join(["nope"] * 10_000) + " FROM " + ONE,
    "5,000 tables in FROM": "SELECT 1 FROM " + ", ".join([ONE.replace("t (", f"t{i} (") for i in range(5_000)]),
    "a regular expression that does not end": "SELECT 'aaa' RLIKE '('",
    "a pattern with a lone escape": "SELECT 'a' LIKE 'a!' ESCAPE '!!'",
    "two semicolons in a word": "SEL;;ECT 1",
    "only a closing parenthesis": ")",
    "only a quote": "'",
    "only a backslash": "\\",
    "only a dollar": "$",
    "a shell's prompt": "penstock> SELECT 1",
    "HTML": "<html><body>SELECT 1</body></html>",
    "JSON": '{"query": "SELECT 1"}',
    "a date that is none": "SELECT DATE '2024-02-30'",
    "a time of 25 hours": "SELECT TIMESTAMP '2024-01-01 25:00:00'",
    "an interval of nothing": "SELECT INTERVAL '' MINUTE",
    "an interval of words": "SELECT INTERVAL 'ten' MINUTE",
    "a hexadecimal that is none": "SELECT X'ABG'",
    "an exponent without digits": "SELECT 1e",
    "two dots": "SELECT 1..2",
    "three names in a row": f"SELECT a b c FROM {ONE}",
    "a trailing comma": f"SELECT a, FROM {ONE}",
    "a leading comma": f"SELECT , a FROM {ONE}",
    "an operator of C": f"SELECT a FROM {ONE} WHERE a == 1 && a != 2",
    "a question mark too many": "SELECT ??",
    "a number as an alias": "SELECT 1 AS 2",
    "a string as a table": "SELECT * FROM 'nope'",
}  # fmt: skip
WITHIN = {f"49 {name}": make(49) for name, make in DEEP.items() if name != "scalar subqueries"}
"""Deep, and right."""
