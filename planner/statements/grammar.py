"""The statement grammar: lark's LALR parser, and the cache of its tables."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Tree
from lark.exceptions import UnexpectedToken
from lark.grammar import Rule
from lark.lexer import Lexer, TerminalDef

from penstock.planner.parser.token_stream import ended, unexpected
from penstock.planner.statements.lexer import StatementLexer, StatementToken, with_types_begun


def tables_of(grammar: Path, lexer: type[Lexer], start: list[str]) -> Lark:
    """Return the parser of a grammar with one of our lexers. Tables are read from a cache file if they derive
    from this text and this lark version. Otherwise they are generated and cached.
    """
    text = grammar.read_text(encoding="utf-8")
    # the cache is valid for one lark version, one set of start rules and one text of the grammar
    digest = hashlib.sha256("\0".join((lark.__version__, *start, text)).encode()).hexdigest()
    cache_file = Path(cache_from_source(str(grammar.with_suffix(".py")))).with_suffix(".tables")
    # not there, or not what was written: generated anew
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        return _deserialize(cache_file.read_bytes(), digest, lexer)
    parser = Lark(text, parser="lalr", lexer=lexer, start=start, maybe_placeholders=False)
    with suppress(OSError):  # no directory can be written to: generated in every process then
        _write_file(cache_file, _serialize(parser, digest))
    return parser


def _serialize(parser: Lark, digest: str) -> bytes:
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    # the lexer is a class, which JSON cannot write: _deserialize puts it back
    data["options"]["lexer"] = data["parser"]["lexer_conf"]["lexer_type"] = None
    body = json.dumps({"data": data, "memo": memo}, separators=(",", ":")).encode()
    # the file: digest of the grammar, digest of the body against a damaged file, body in JSON
    return b"\n".join((digest.encode(), hashlib.sha256(body).hexdigest().encode(), body))


def _deserialize(written: bytes, digest: str, lexer: type[Lexer]) -> Lark:
    """Return the parser of cached tables. Raise ValueError when they are incomplete or of another grammar."""
    of, checksum, body = written.split(b"\n", 2)
    if of.decode() != digest or checksum.decode() != hashlib.sha256(body).hexdigest():
        raise ValueError("tables of another grammar")
    tables = json.loads(body)
    data, table = tables["data"], tables["data"]["parser"]["parser"]
    # the numbers of tokens, states and memo entries
    table["tokens"] = _by_number(table["tokens"])
    table["states"] = {int(state): _by_number(steps) for state, steps in table["states"].items()}
    data["options"]["lexer"] = data["parser"]["lexer_conf"]["lexer_type"] = lexer
    return Lark._load_from_dict(data, _by_number(tables["memo"]))


def _by_number(written: dict[str, Any]) -> dict[int, Any]:
    """Return a mapping with integer keys, which JSON writes as strings."""
    return {int(number): value for number, value in written.items()}


def _write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # write to a file of this process, then rename: a reader never sees half a file
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


@cache
def _grammar() -> Lark:
    return tables_of(Path(__file__).with_name("statements.lark"), StatementLexer, ["statement"])


def parse_tree(text: str) -> Tree:
    """Return lark's tree of a statement. Raise SQL-1001 or SQL-1008 with a span and the
    expected terminals.
    """
    try:
        return _grammar().parse(text, start="statement")
    except UnexpectedToken as error:
        if isinstance(error.token, StatementToken):
            raise unexpected(error.token) from None
        raise ended(len(text.rstrip()), with_types_begun(error.expected)) from None
