"""Hints for syntax errors: what to write in place of the spellings of other dialects and of frequent slips.

A rule is a pattern of the tokens around the one that was not accepted. A pattern's token is a word or symbol,
several with ``|`` between them, or one of ``<word>``, ``<number>``, ``<string>`` and ``<any>``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.planner.parser.keywords import RESERVED
from penstock.planner.parser.scanner import scan


class _Token(NamedTuple):
    kind: str
    text: str


class _Rule(NamedTuple):
    """The tokens before the culprit, those from the culprit on, and the hint. ``first`` is the statement's
    first word, ``inside`` the word before the innermost parenthesis that is open.
    """

    before: str
    here: str
    hint: str
    first: str = ""
    inside: str = ""


_FILES = "a file is read as FROM 'orders.csv'; INSERT INTO t SELECT * FROM 'orders.csv' copies its rows to t"
_TRANSACTION = "there are no transactions: an INSERT commits by itself, so leave {here} out"
_SHELL = "that is a command of the system's shell: leave by \\q, or run it there"
_UNITS = "units are SECOND, MINUTE, HOUR, DAY, MONTH and YEAR: INTERVAL '1' DAY"
_OPTIONS = "write WITH ('connector' = 'filesystem', 'path' = '..', 'format' = 'csv')"
_UNCHECKED = "leave it out: no constraint is checked; PRIMARY KEY (..) NOT ENFORCED is a promise"
_TIME_UNITS = (
    "SECOND|SECONDS|MINUTE|MINUTES|HOUR|HOURS|DAY|DAYS|WEEK|WEEKS|MONTH|MONTHS|YEAR|YEARS|MILLISECOND"
    "|MILLISECONDS|SEC|MIN"
)

# words that other engines begin a statement with
_FIRST_WORDS = (
    _Rule("", "COPY", _FILES.replace("; INSERT", "; CREATE TABLE t WITH (..) AS SELECT writes one; INSERT")),
    _Rule("", "LOAD|UNLOAD MODULE", "leave it out: connectors and functions are Python modules"),
    _Rule("", "LOAD|IMPORT|UNLOAD|EXPORT", _FILES),
    _Rule(
        "",
        "PRAGMA|INFO|LIST",
        "DESCRIBE orders shows a table's columns, SHOW TABLES lists tables, SET settings",
    ),
    _Rule(
        "",
        "GRANT|REVOKE",
        "there are no users: who may read a table is a matter of its files, so leave {here} out",
    ),
    _Rule(
        "", "EXEC|CALL", "there are no procedures: SHOW TABLES, SHOW FUNCTIONS and HELP list what there is"
    ),
    _Rule("", "TEST|GIVEN|EXPECT", "a file of tests is run by penstock test, on the command line"),
    _Rule("", "COMMIT|ROLLBACK|START|ABORT", _TRANSACTION),
    _Rule(
        "",
        "REFRESH|CACHE|UNCACHE|VACUUM|OPTIMIZE|MSCK|CHECKPOINT",
        "nothing is cached: leave the statement out",
    ),
    _Rule(
        "",
        "ATTACH",
        "CREATE TABLE t WITH ('connector' = 'sqlite', ..) reads a database; so do duckdb, postgres",
    ),
    _Rule("", "TERMINATE|PAUSE|RESUME", "write STOP JOB 'id'; SHOW JOBS lists them"),
    _Rule("", "PRINT", "write SELECT * FROM t"),
    _Rule("", "ADD|REMOVE", "there are no jars: connectors and functions are Python modules"),
    _Rule("", "INSTALL", "extras are installed outside: pip install 'penstock[spark]'"),
    _Rule("", "REPLACE|UPSERT", "write INSERT INTO: a table with a PRIMARY KEY keeps the last row of a key"),
    _Rule("", "DECLARE|PREPARE", "parameters are those of a program: cursor.execute('SELECT ?', [1])"),
    _Rule("", "GO|DELIMITER", "leave it out: a statement ends with a semicolon"),
    _Rule("", "SOURCE|RUN|@", "in the shell \\i FILE runs a script; outside it is penstock run FILE"),
    _Rule("", ".", "SHOW TABLES lists tables; in the shell \\? lists commands"),
    _Rule("", "\\", "a command of the shell is alone on its line: \\? lists them"),
    _Rule("", "!", _SHELL),
    _Rule("", "PENSTOCK >", "penstock> is the prompt of the shell: leave it out"),
    _Rule("", "$", "$ is the prompt of the system's shell: run the line there, without it"),
    _Rule(
        "",
        "PENSTOCK",
        "that is a command of the system's shell: leave by \\q, or \\i FILE runs a script here",
    ),
    _Rule(
        "", "LS|CD|DIR|PWD|PIP|PYTHON|PYTHON3|CAT|CLEAR|CLS|SUDO|GIT|UV|MKDIR|RM|ECHO|LESS|HEAD|TAIL", _SHELL
    ),
)

# behind CREATE and DROP
_OBJECTS = (
    _Rule("CREATE|DROP", "INDEX|UNIQUE", "there are no indexes: leave the statement out"),
    _Rule(
        "CREATE",
        "STREAM|SOURCE|SINK",
        "write CREATE TABLE {next} (..) WITH ('connector' = 'kafka', 'topic' = '..', "
        "'properties.bootstrap.servers' = '..', 'format' = 'json'), and INSERT INTO it for a sink of a query",
    ),
    _Rule("CREATE", "SCHEMA", "write CREATE DATABASE"),
    _Rule("CREATE|REFRESH", "STREAMING TABLE", "write CREATE MATERIALIZED VIEW, and FROM t for STREAM(t)"),
    _Rule("CREATE OR", "REFRESH", "write CREATE MATERIALIZED VIEW, and FROM t for STREAM(t)"),
    _Rule(
        "CREATE|ALTER|DROP MATERIALIZED",
        "TABLE",
        "write CREATE MATERIALIZED VIEW v AS .., which is always fresh, and leave FRESHNESS out",
    ),
    _Rule(
        "OR REPLACE",
        "MATERIALIZED",
        "write DROP MATERIALIZED VIEW IF EXISTS v; and then CREATE MATERIALIZED VIEW v",
    ),
    _Rule(
        "ALTER",
        "MATERIALIZED",
        "write DROP MATERIALIZED VIEW v; and then CREATE MATERIALIZED VIEW with another name",
    ),
    _Rule("CREATE|DROP", "CONNECTION|SECRET", "leave it out: WITH of a table says how it is reached"),
    _Rule(
        "CREATE|DROP", "MODEL", "leave it out: CREATE FUNCTION f AS 'module.f' LANGUAGE PYTHON calls a model"
    ),
    _Rule(
        "CREATE", "EXTERNAL|FOREIGN|UNLOGGED|GLOBAL|LOCAL", "leave {here} out: WITH says where the rows are"
    ),
    _Rule("CREATE", "IF NOT EXISTS", "write CREATE TABLE IF NOT EXISTS and the name"),
    _Rule("DROP", "IF EXISTS", "write DROP TABLE IF EXISTS and the name"),
    _Rule("OR REPLACE", "TABLE <word>", "write DROP TABLE IF EXISTS {next}; and then CREATE TABLE {next}"),
    _Rule(
        "REPLACE TEMPORARY",
        "TABLE <word>",
        "write DROP TEMPORARY TABLE IF EXISTS {next}; and then CREATE TEMPORARY TABLE {next}",
    ),
    _Rule(
        "CREATE", "<word>", "TABLE, VIEW, MATERIALIZED VIEW, FUNCTION, DATABASE and CATALOG can be created"
    ),
    _Rule(
        "TABLE|VIEW|DATABASE <word>",
        "IF NOT EXISTS",
        "write IF NOT EXISTS before the name: IF NOT EXISTS {last}",
    ),
    _Rule("TABLE|VIEW|DATABASE <word>", "IF EXISTS", "write IF EXISTS before the name: IF EXISTS {last}"),
    _Rule(
        "FUNCTION <word>",
        "(",
        "a function is written in Python: CREATE FUNCTION {last} AS 'module.name' LANGUAGE PYTHON",
    ),
)

# columns and options of tables
_TABLES = (
    _Rule("WITH (", "<word>", "keys and values are texts in single quotes: '{here}' = '..'"),
    _Rule(
        "<string> ,", "<word>", "keys and values are texts in single quotes: '{here}' = '..'", first="CREATE"
    ),
    _Rule("=", "<number>|<word>", "a value is a text in single quotes: '{here}'", first="CREATE"),
    _Rule("<string>", ":", "write = between the key and the value"),
    _Rule(
        "<any>",
        "USING DELTA|ICEBERG",
        "write WITH ('connector' = '{next}', 'table-path' = '..')",
        first="CREATE",
    ),
    _Rule(
        "VIEW <word>",
        "USING <word>",
        "write CREATE TEMPORARY VIEW {last} AS SELECT * FROM 'path'",
    ),
    _Rule(
        "<any>",
        "USING <word>",
        "write WITH ('connector' = 'filesystem', 'format' = '{next}', 'path' = '..')",
        first="CREATE",
    ),
    _Rule("<any>", "OPTIONS|TBLPROPERTIES|STORED|LOCATION|ROW|CLUSTERED|ENGINE", _OPTIONS, first="CREATE"),
    _Rule(
        "<any>",
        "AUTO_INCREMENT|AUTOINCREMENT|IDENTITY|GENERATED",
        "leave {here} out: who writes the table gives its values",
        first="CREATE",
    ),
    _Rule(
        "<any>",
        "DEFAULT",
        "leave DEFAULT out: COALESCE({column}, ..) in a query replaces NULL",
        first="CREATE",
    ),
    _Rule("<any>", "UNIQUE|REFERENCES|CHECK", _UNCHECKED, first="CREATE"),
    _Rule("KEY (", "<word>", _UNCHECKED, first="CREATE"),
    _Rule("<word>", "ALTER|CHANGE|REPLACE", "write MODIFY and the column with its new type", first="ALTER"),
    _Rule("INSERT", "<word>", "write INSERT INTO {here}"),
    _Rule(",", ")", "leave out the comma before it"),
    _Rule("<word>", "<word> <word>", "a comma is missing before {here}", first="CREATE", inside="<word>"),
    _Rule(")", "<word> <word>", "a comma is missing before {here}", first="CREATE", inside="<word>"),
)

# the small statements
_COMMANDS = (
    _Rule("BEGIN", "TRANSACTION|WORK", _TRANSACTION),
    _Rule("BEGIN", "", "there are no transactions: an INSERT commits by itself, so leave BEGIN out"),
    _Rule(
        "EXPLAIN ANALYZE",
        "SELECT|INSERT|WITH|VALUES",
        "leave ANALYZE out to see the plan; EXPLAIN ANALYZE JOB 'id' measures a running job",
    ),
    _Rule(
        "EXPLAIN",
        "VERBOSE|CODEGEN|FORMAT",
        "write EXPLAIN, or EXPLAIN JSON, and the query",
    ),
    _Rule("<any>", "TO|:", "write SET 'key' = 'value'", first="SET"),
    _Rule("<any>", "<number>|<string>|<word>", "write SET 'key' = 'value'", first="SET"),
    _Rule("SHOW", "JARS|MODULES", "there are none: connectors and functions are Python modules"),
    _Rule("SHOW", "PARTITIONS", "SELECT DISTINCT of the partition columns lists them"),
    _Rule("SHOW", "TBLPROPERTIES", "SHOW CREATE TABLE shows the options of a table"),
    _Rule("SHOW", "FULL|EXTENDED", "write SHOW TABLES"),
    _Rule("DESC|DESCRIBE FORMATTED", "<word>", "write DESCRIBE {here}"),
    _Rule("DESC|DESCRIBE FUNCTION", "<word>", "write SHOW FUNCTIONS LIKE '{here}'"),
    _Rule("ALTER TABLE <word> SET", "TBLPROPERTIES", "write SET ('key' = 'value')"),
    _Rule("OVERWRITE DIRECTORY", "<string>", "write CREATE TABLE t WITH ('path' = '..') AS SELECT .."),
    _Rule("<any>", "CASCADE|RESTRICT", "leave {here} out", first="DROP"),
    _Rule("DESC|DESCRIBE <word>", "EXTENDED|FORMATTED", "write DESCRIBE EXTENDED {last}"),
    _Rule("DESC|DESCRIBE HISTORY|DETAIL", "<word>", "SHOW CREATE TABLE {here} shows its options"),
    _Rule("USE", "MODULES", "leave it out: connectors and functions are Python modules"),
    _Rule("USE MODULES", "<any>", "leave it out: connectors and functions are Python modules"),
    _Rule("EXECUTE", "PLAN", "there are no compiled plans: run the statement itself"),
    _Rule("SHOW", "TOPICS", "SHOW TABLES lists the declared tables"),
    _Rule("SHOW", "SCHEMAS", "write SHOW DATABASES"),
    _Rule("SHOW", "VARIABLES|ALL|PARAMETERS|CONFIG", "SET alone lists all settings"),
    _Rule("SHOW", "STREAMS|SOURCES|SINKS", "SHOW TABLES lists tables, SHOW JOBS what runs"),
    _Rule("SHOW", "PROCESSLIST|QUERIES", "SHOW JOBS lists what runs"),
    _Rule("SHOW CREATE", "<word>", "write SHOW CREATE TABLE {here}"),
)

# queries
_QUERIES = (
    _Rule(
        "INCLUDE|EXCLUDE", "NULLS", "write FROM t UNPIVOT {last} NULLS (x FOR n IN (a, b))", first="UNPIVOT"
    ),
    _Rule("IN", "[", "a list is in parentheses: IN (1, 2)"),
    _Rule("&", "&", "write AND"),
    _Rule("<any>", "& &", "write AND"),
    _Rule("<any>", "= >", "write >="),
    _Rule("=", "=", "write ="),
    _Rule("<any>", "= <", "write <="),
    _Rule("*", "*", "write power(a, b)"),
    _Rule("<any>", "~", "write RLIKE for a regular expression, LIKE or ILIKE for % and _"),
    _Rule("<any>", "@", "write the value; a program writes ? and passes it: cursor.execute('SELECT ?', [1])"),
    _Rule("<any>", ": =", "write => and the argument, or named_struct('a', 1) for a struct"),
    _Rule("<any>", ": <number>", "write slice(array, 1, 2): the first element and how many"),
    _Rule("<any>", ":", "write get_json_object(x, '$.a') for a field of JSON, x.a for one of a row"),
    _Rule(
        "WINDOW TUMBLING",
        "(",
        "write FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR), and GROUP BY window_start, "
        "window_end",
    ),
    _Rule(
        "WINDOW HOPPING",
        "(",
        "write FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND), the advance "
        "first, and GROUP BY window_start, window_end",
    ),
    _Rule(
        "WINDOW SESSION",
        "(",
        "write FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '60' SECOND), and GROUP BY "
        "window_start, window_end",
    ),
    _Rule("<any>", "USING SAMPLE", "write TABLESAMPLE (10 PERCENT) or (10 ROWS) behind the table"),
    _Rule(". ", "*", "name the row: SELECT r.* FROM (SELECT .. AS r) AS t"),
    _Rule("AS", "( <word>", "write the function in FROM: LATERAL VIEW f(..) t AS a, b"),
    _Rule(
        "TRANSFORM ( <any> , <any> )",
        "USING",
        "write it in Python: CREATE FUNCTION f AS 'module.f' LANGUAGE PYTHON",
    ),
    _Rule("STREAM *", "FROM", "leave STREAM out: a query over a stream is one"),
    _Rule(
        "<any>",
        "ON CONFLICT",
        "write ON CONFLICT DO NOTHING, DO DEDUPLICATE or DO ERROR behind the query of an INSERT: the key is "
        "the table's PRIMARY KEY",
    ),
    _Rule("MULTISET [ <any>", ",", "write ARRAY[1, 2, 3]"),
    _Rule(
        "<any>", "WITH CONDITIONAL", "leave WITH CONDITIONAL ARRAY WRAPPER out: the value is JSON as it is"
    ),
    _Rule("U &", "<string>", "write E and \\u: E'\\u0061'"),
    _Rule("_UTF8|_UTF16|_UTF32|_LATIN1", "<string>", "leave {last} out: texts are UTF-8"),
    _Rule("<word>", "EXISTS", "write {last} IN (SELECT ..), or EXISTS (SELECT ..) alone"),
    _Rule("KEEP", "(", "write max_by(value, order), or min_by"),
    _Rule("<any>", "WITH", "leave it out: SUBSCRIBE begins with the rows that are there", first="SUBSCRIBE"),
    _Rule("TOP", "<number>", "write LIMIT {here} at the end of the query"),
    _Rule("IN|=|<|>|FROM|JOIN|EXISTS|(", "SELECT", "a subquery is in parentheses: (SELECT ..)"),
    _Rule("GROUP|ORDER|PARTITION", "<any>", "write {last} BY"),
    _Rule("<any>", ", <word>", "write {inside}(.. AS {next})", inside="CAST|TRY_CAST"),
    _Rule("(", "* ,", "close the parenthesis: {inside}(*)", inside="<word>"),
    _Rule("INTERVAL <string>|<number>", "<word>", _UNITS),
    _Rule("<number>", _TIME_UNITS, "write INTERVAL '{last}' {here}"),
    _Rule("IS", "<string>|<number>", "write = {here}"),
    _Rule("IS NOT", "<string>|<number>", "write <> {here}"),
    _Rule("<any>", "INTO <word>", "write INSERT INTO {next} before SELECT"),
    _Rule(
        "<any>",
        "SELECT|INSERT|CREATE|DROP|ALTER|SET|SHOW|EXPLAIN",
        "a semicolon ends the statement before it",
    ),
)
_TYPE_FIRST = _Rule(
    "INT|INTEGER|BIGINT|STRING|VARCHAR|TEXT|DOUBLE|FLOAT|DATE|TIMESTAMP|BOOLEAN",
    "<word>",
    "the name comes before its type: {here} {last}",
    first="CREATE",
)
_RULES = {
    "SQL-1001": (*_OBJECTS, *_TABLES, *_COMMANDS, *_QUERIES),
    "SQL-1010": _FIRST_WORDS,
    "SQL-1204": (_TYPE_FIRST,),
}

_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT")
_ORDER = "the order of clauses is FROM, WHERE, GROUP BY, HAVING, QUALIFY, ORDER BY, LIMIT"


def syntax_hint(code: str, text: str, position: int) -> str | None:
    """Return what to write for an error of a code, where a text was not accepted at a position. ``None``
    where no rule knows it.
    """
    # to scan a text of many megabytes takes seconds
    if code not in _RULES:
        return None
    tokens, culprit = [], 0
    for kind, start, end in scan(text):
        culprit += end <= position
        tokens.append(_Token(kind, text[start:end]))
    inside = _open_parentheses(tokens[:culprit])
    for rule in _RULES[code]:
        if _matches(rule, tokens, culprit, inside):
            return _filled(rule.hint, tokens, culprit, inside)
    return _structure_hint(tokens, culprit, inside) if code == "SQL-1001" else None


def _matches(rule: _Rule, tokens: list[_Token], culprit: int, inside: list[int]) -> bool:
    before, here = rule.before.split(), rule.here.split()
    # an empty pattern is an edge of the statement
    if (not before and culprit) or (not here and culprit < len(tokens)):
        return False
    if rule.first and tokens[0].text.upper() != rule.first:
        return False
    if rule.inside and not (inside and inside[-1] and _is(tokens[inside[-1] - 1], rule.inside)):
        return False
    return _all_are(tokens[max(0, culprit - len(before)) : culprit], before) and _all_are(
        tokens[culprit : culprit + len(here)], here
    )


def _all_are(tokens: Sequence[_Token], patterns: list[str]) -> bool:
    return len(tokens) == len(patterns) and all(map(_is, tokens, patterns))


def _is(token: _Token, pattern: str) -> bool:
    for word in pattern.split("|"):
        if word in ("<any>", token.text.upper()) or word == f"<{token.kind}>":
            return True
        if word == "<word>" and token.kind == "quoted":
            return True
    return False


def _open_parentheses(tokens: Sequence[_Token]) -> list[int]:
    """Return the positions of the parentheses that nothing closes, the innermost last."""
    found: list[int] = []
    for index, token in enumerate(tokens):
        _track_parentheses(found, index, token)
    return found


def _track_parentheses(found: list[int], index: int, token: _Token) -> None:
    """Bring the positions of open parentheses behind one more token."""
    if token.text == "(":
        found.append(index)
    elif token.text == ")" and found:
        found.pop()


def _clauses_of(tokens: Sequence[_Token], inside: list[int]) -> list[str]:
    """Return the first words of the clauses that begin within exactly these open parentheses."""
    found: list[int] = []
    clauses = []
    # one pass: a long statement has thousands of clauses
    for index, token in enumerate(tokens):
        if found == inside and token.text.upper() in _CLAUSES:
            clauses.append(token.text.upper())
        _track_parentheses(found, index, token)
    return clauses


def _filled(hint: str, tokens: list[_Token], culprit: int, inside: list[int]) -> str:
    def shown(index: int) -> str:
        return tokens[index].text.strip('"`') if 0 <= index < len(tokens) else ".."

    column = culprit
    # the item of a list that the culprit is in begins behind a comma or a parenthesis
    while column > 0 and tokens[column - 1].text not in ("(", ","):
        column -= 1
    return hint.format(
        here=shown(culprit),
        next=shown(culprit + 1),
        last=shown(culprit - 1),
        column=shown(column),
        inside=shown(inside[-1] - 1) if inside else "..",
    )


def _structure_hint(tokens: list[_Token], culprit: int, inside: list[int]) -> str | None:
    if culprit >= len(tokens):
        return "a closing parenthesis is missing" if inside else None
    here = tokens[culprit]
    if here.text == ")" and not inside:
        return "a parenthesis closes that was never opened: leave it out"
    # the clauses of the query that the culprit is in, not those of subqueries before it
    clauses = _clauses_of(tokens[:culprit], inside)
    word = here.text.upper()
    if word in _CLAUSES and clauses and _CLAUSES.index(word) < _CLAUSES.index(clauses[-1]):
        return _ORDER
    in_a_list = (clauses and clauses[-1] == "SELECT") or (inside and not clauses)
    if (
        in_a_list
        and culprit
        and _is_value(here)
        and (_is_value(tokens[culprit - 1]) or tokens[culprit - 1].text == ")")
    ):
        return f"a comma is missing before {here.text}"
    return None


def _is_value(token: _Token) -> bool:
    word = token.kind == "word" and token.text.upper() not in RESERVED
    return word or token.kind in ("quoted", "number", "string")
