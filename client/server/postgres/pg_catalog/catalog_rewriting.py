"""Texts of catalog queries as DuckDB reads them: names of PostgreSQL's schemas, casts, operators."""

from __future__ import annotations

import re

from penstock.client.server.postgres.pg_catalog import catalog_functions
from penstock.client.server.postgres.pg_catalog.catalog_tables import INFORMATION_SCHEMA, TABLES
from penstock.client.server.postgres.sql_words import SqlToken

_VIEWS = frozenset({"pg_user", "pg_authid", "pg_group"})
NAMES = frozenset({*TABLES, *_VIEWS, *catalog_functions.NAMES})
_ALONE = frozenset({"current_user", "session_user", "current_role", "user", "current_catalog"})
"""Functions without parentheses."""
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "("})
# functions that our own language does not have, so that a text with one is a catalog query
_CALLS = catalog_functions.NAMES - {"quote_ident"}
# CAST($1 AS REGCLASS), with a type of the parameter itself
_CAST = re.compile(r"\bCAST\((\$\s*\d+(?:::\w+)?|'[^']*') AS (regclass|regtype)\)", re.IGNORECASE)
# '{a,b}'::text[], of plain words
_TEXT_ARRAY = re.compile(r"'\{([\w,]*)\}'::(?:text|varchar|name)\[\]", re.IGNORECASE)
# an array as a table of one row, as Grafana reads the search path
_ARRAY_SCAN = re.compile(r"(,|FROM)\s+string_to_array\(((?:[^()]|\([^()]*\))*)\)\s+(\w+)", re.IGNORECASE)
_CAST_OF_OID = re.compile(r"\bAS (?:regclass|regtype)\)", re.IGNORECASE)
_CASTS = {"regclass": ("regclass_oid", "regclass_name"), "regtype": ("regtype_oid", "regtype_name")}
_RENAMED = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_agg": "json_group_array",
}
_TEXT_TYPES = frozenset(
    {"name", "regproc", "regprocedure", "regoper", "regrole", "regnamespace", "aclitem", "char"}
)


def is_catalog_query(tokens: list[SqlToken]) -> bool:
    """Return whether a statement is a query that names the system catalog or calls one of its functions."""
    if not tokens or tokens[0].upper not in _QUERIES:
        return False
    for at, token in enumerate(tokens):
        if token.kind not in ("word", "quoted"):
            continue
        name = token.text.strip('"').lower()
        behind = tokens[at + 1].text if at + 1 < len(tokens) else ""
        before = tokens[at - 1].text if at else ""
        if (
            # pg_catalog.x, information_schema.x
            (name in ("pg_catalog", "information_schema") and behind == ".")
            or (name in _CALLS and behind == "(" and before != ".")
            or (name in TABLES and name.startswith("pg_") and before.upper() in ("FROM", "JOIN", ","))
            or (name in _VIEWS and before.upper() in ("FROM", "JOIN", ","))
        ):
            return True
    # SELECT current_user: a text without tables
    words = {token.upper for token in tokens if token.kind == "word"}
    return "FROM" not in words and any(word.lower() in _ALONE for word in words)


def rewritten(sql: str, tokens: list[SqlToken], user: str) -> tuple[str, int]:
    """Return a catalog query as DuckDB reads it, and how many parameters it has."""
    pieces: list[str] = []
    at, end, parameters = 0, 0, 0
    while at < len(tokens):
        token = tokens[at]
        gap = sql[end : token.start]
        text, used = _piece(tokens, at, user)
        if text == "$" and at + 1 < len(tokens) and tokens[at + 1].kind == "number":
            parameters = max(parameters, int(tokens[at + 1].text))
        # a cast needs what is before it
        if text.startswith("::") and (call := _CASTS.get(text[2:])) is not None:
            _cast_before(pieces, call)
        else:
            pieces += [gap, text]
        at += used
        end = tokens[at - 1].end
    looked_up = _TEXT_ARRAY.sub(_text_list, "".join(pieces))
    looked_up = _ARRAY_SCAN.sub(r"\1 (SELECT string_to_array(\2) AS \3) AS \3", looked_up)
    looked_up = _CAST.sub(r"pgc.\2_oid(\1)", looked_up)
    # of an OID: a number stays one
    return _CAST_OF_OID.sub("AS BIGINT)", looked_up), parameters


def _piece(tokens: list[SqlToken], at: int, user: str) -> tuple[str, int]:
    """Return what stands for the tokens from one on, and how many they are."""
    token = tokens[at]
    words = [each.text.strip('"').lower() for each in tokens[at : at + 6]]
    name, behind = words[0], words[1] if len(words) > 1 else ""
    before = tokens[at - 1].text if at else ""
    # OPERATOR(pg_catalog.~)
    if token.kind == "word" and name == "operator" and behind == "(":
        close = next((i for i in range(at, len(tokens)) if tokens[i].text == ")"), len(tokens) - 1)
        symbols = [each.text for each in tokens[at + 2 : close] if each.kind == "symbol" and each.text != "."]
        return "".join(symbols), close - at + 1
    # COLLATE pg_catalog.default, COLLATE "C"
    if token.kind == "word" and name == "collate":
        return "", 4 if words[2:3] == ["."] else 2
    if token.text == ":" and behind == ":":
        return _cast(tokens, at)
    if token.kind in ("word", "quoted") and before != ".":
        if name == "pg_catalog" and behind == ".":
            # a built-in type or function has no schema in DuckDB
            inner = words[2] if len(words) > 2 else ""
            return (f"pgc.{inner}" if inner in NAMES else inner), 3
        if name == "information_schema" and behind == ".":
            inner = words[2] if len(words) > 2 else ""
            return (f"isc.{inner}" if inner in INFORMATION_SCHEMA else f"pgc.{inner}"), 3
        if token.kind == "word" and (name in NAMES and (behind == "(" or name.startswith("pg_"))):
            return f"pgc.{name}", 1
        if name in _RENAMED and behind == "(":
            return _RENAMED[name], 1
        if token.kind == "word" and name in _ALONE - {"current_catalog"} and behind != "(":
            return "'" + user.replace("'", "''") + "'", 1
        if token.kind == "word" and name == "current_catalog":
            return "getvariable('database')", 1
    return token.text, 1


def _cast(tokens: list[SqlToken], at: int) -> tuple[str, int]:
    """Return a cast ``::type`` of types that DuckDB has; regclass and regtype are left to the caller."""
    used = 2
    words = [each.text.strip('"').lower() for each in tokens[at + 2 : at + 5]]
    if words[:2] == ["pg_catalog", "."] or words[:2] == ["information_schema", "."]:
        words, used = words[2:], 4
    kind = words[0] if words else ""
    if kind in _TEXT_TYPES:
        return "::VARCHAR", used + 1
    # vectors of PostgreSQL are lists here already
    if kind in ("int2vector", "oidvector"):
        return "::BIGINT[]", used + 1
    return f"::{kind}", used + 1


def _text_list(found: re.Match[str]) -> str:
    words = ", ".join(f"'{word}'" for word in found[1].split(",") if word)
    return f"[{words}]::VARCHAR[]"


def _cast_before(pieces: list[str], call: tuple[str, str]) -> None:
    """Put a call around the operand before a cast: a name or number is shown, a string is looked up."""
    to_oid, to_name = call
    while pieces and not pieces[-1].strip():
        pieces.pop()
    text = "".join(pieces)
    if text.endswith("'"):
        found = re.search(r"'(?:[^']|'')*'$", text)
        function = to_oid
    else:
        found = re.search(r"(\$\s*\d+|[\w.\"]+)$", text)
        function = to_oid if found is not None and found[0].startswith("$") else to_name
    if found is None:
        pieces[:] = [text]
        return
    pieces[:] = [text[: found.start()], f"pgc.{function}({found[0]})"]
