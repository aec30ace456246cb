"""The lexical scanner: it checks the limits of a statement and raises the first lexical errors. It is a loop,
so no nesting depth overflows the stack.

The shell colours input with it from the first prompt on, so it imports nothing heavy: sqlglot is imported in
``dialect``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from penstock.catalog.errors import PenstockError, Span

MAX_STATEMENT_CHARS = 1_000_000
# nested parentheses: the parser and the binder recurse once a level
MAX_DEPTH = 200
MAX_OPERATORS = 5_000
# Python's own limit of 1,000 frames is below what a legal chain of operators takes
_RECURSION_LIMIT = 20_000

# one alternative for each kind; the first that matches wins, so comments precede the symbols / and -
_SCAN = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]+)
    | (?P<hint>/\*\+.*?\*/)
    | (?P<comment>--[^\n]*|/\*.*?\*/)
    | (?P<string>'[^']*(?:''[^']*)*'|[eE]'(?:[^'\\]|\\.|'')*')
    | (?P<quoted>`[^`]*(?:``[^`]*)*`|"[^"]*(?:""[^"]*)*")
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<semicolon>;)
    | (?P<open>/\*|['`"])
    | (?P<symbol>[()\[\]{},.+\-*/%=<>!|&^~?:@#$\\])
    | (?P<bad>.)""",
    re.DOTALL | re.VERBOSE,
)
# what may hold a quote without beginning a string; raw strings and strings of a dialect with escapes
_WITH_ESCAPES = re.compile(
    r"""(?P<other>--[^\n]*|/\*.*?\*/|`[^`]*`|"[^"]*"|[eE]'(?:[^'\\]|\\.|'')*')
    | (?P<raw>\b[rR]'(?P<body>[^']*)')
    | (?P<word>[^\W\d][\w$]*)
    | (?P<string>'(?:[^'\\]|\\.|'')*')""",
    re.DOTALL | re.VERBOSE,
)
_HALF = re.compile("[\ud800-\udfff]")  # half a character: no encoding has it
_OPEN = {"'": "string", "`": "quoted name", '"': "quoted name", "/*": "comment"}
# characters that editors put in place of plain ones, named in the hint
_LOOKALIKE = {
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    **dict.fromkeys("–—", "-"),
    **dict.fromkeys("\u00a0\u3000", "space"),
    "，": ",",
    "；": ";",
    "（": "(",
    "）": ")",
}


def scan(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of every lexical token except space and comments. Kinds are the group names of
    ``_SCAN``. An unterminated string or comment is the last token, of kind ``open``.
    """
    for match in _SCAN.finditer(text):
        kind = match.lastgroup or ""
        # a byte order mark
        if kind == "bad" and match.start() == 0 and match[0] == "\ufeff":
            continue
        # a quote or comment that is never closed reaches to the end
        if kind == "open":
            yield kind, match.start(), len(text)
            return
        if kind not in ("space", "comment"):
            yield kind, match.start(), match.end()


def escape_strings(text: str) -> str:
    """Return a text in which a backslash escapes within strings, as in Spark, in our dialect. ``'it\\'s'``
    becomes ``E'it\\'s'``, the raw ``r'\\d'`` becomes ``'\\d'``.
    """

    def written(match: re.Match[str]) -> str:
        if match["raw"]:
            return f"'{match['body']}'"
        if not match["string"] or "\\" not in match[0]:
            return match[0]
        # LIKE'a\\_b': a word before it is not part of it
        touches = match.start() > 0 and (text[match.start() - 1].isalnum() or text[match.start() - 1] == "_")
        return f"{' ' if touches else ''}E{match[0]}"

    return _WITH_ESCAPES.sub(written, text)


def next_lexeme(text: str, position: int) -> tuple[str, int]:
    """Return the kind and the end of what begins at a position; space and comments are lexemes too."""
    match = _SCAN.match(text, position)
    assert match is not None, "the last alternative matches any character"
    return match.lastgroup or "", match.end()


def check_text(text: str) -> None:
    """Raise for a statement with a lexical fault: a stray character (SQL-1002), an unterminated string
    (SQL-1003), too long a text (SQL-1005), too deep nesting (SQL-1006).
    """
    if len(text) > MAX_STATEMENT_CHARS:
        message = f"a statement of {len(text):,} characters is over the limit of {MAX_STATEMENT_CHARS:,}"
        raise PenstockError(
            "SQL-1005",
            message,
            span=Span(0, 1),
            hint="put long lists of values into a table and join it",
            sqlstate="54000",
        )
    # searched apart: within strings and comments the scanner accepts every character
    if (half := _HALF.search(text)) is not None:
        raise _stray(half[0], half.start())
    # parentheses are counted here, in a loop: the parser would overflow the stack before it could report them
    depth = 0
    for kind, start, end in scan(text):
        piece = text[start : min(end, start + 8)]
        # the text ends within a string, a quoted name or a comment
        if kind == "open":
            raise _unterminated(piece[:2] if piece.startswith("/*") else piece[0], start)
        if kind == "bad":
            raise _stray(piece, start)
        # CASE .. END nests like a parenthesis; an END too many is left to the grammar
        if piece in ("(", "[", "{") or (kind == "word" and piece.upper() == "CASE"):
            depth += 1
            if depth > MAX_DEPTH:
                raise too_deep(Span(start, end))
        elif piece in (")", "]", "}") or (kind == "word" and piece.upper() == "END"):
            depth = max(0, depth - 1)


def too_deep(span: Span) -> PenstockError:
    """Return the error SQL-1006: the statement nests more than ``MAX_DEPTH`` levels."""
    hint = "name the inner parts in a WITH clause or a view"
    return PenstockError(
        "SQL-1006",
        f"the statement nests more than {MAX_DEPTH} levels deep",
        span=span,
        hint=hint,
        sqlstate="54001",
    )


def too_many_operators(span: Span) -> PenstockError:
    """Return the error SQL-1007: an expression has more than ``MAX_OPERATORS`` operators."""
    hint = "put the values into a table, or name parts of the expression in a subquery"
    return PenstockError(
        "SQL-1007",
        f"an expression of more than {MAX_OPERATORS:,} operators is over the limit",
        span=span,
        hint=hint,
        sqlstate="54001",
    )


def too_deep_a_type(span: Span | None) -> PenstockError:
    """Return the error SQL-1017: a type nests more than ``MAX_DEPTH`` levels."""
    hint = "make a table of its own of the inner rows"
    return PenstockError(
        "SQL-1017", f"a type nests more than {MAX_DEPTH} levels deep", span=span, hint=hint, sqlstate="54001"
    )


def allow_depth() -> None:
    """Raise Python's recursion limit to what the limits above need. It is never lowered again: another thread
    may be deep in a recursion at that moment.
    """
    if sys.getrecursionlimit() < _RECURSION_LIMIT:
        sys.setrecursionlimit(_RECURSION_LIMIT)


def _unterminated(mark: str, start: int) -> PenstockError:
    end = {"/*": "*/"}.get(mark, mark)
    span = Span(start, start + len(mark))
    return PenstockError(
        "SQL-1003",
        f"the {_OPEN[mark]} that begins here never ends",
        span=span,
        hint=f"close it with {end}" + ("; within a text it is doubled: 'it''s'" if mark == "'" else ""),
        sqlstate="42601",
    )


def _stray(piece: str, start: int) -> PenstockError:
    plain = _LOOKALIKE.get(piece)
    shown = piece if piece.isprintable() and not piece.isspace() else f"U+{ord(piece):04X}"
    hint = (
        "remove it"
        if plain is None
        else "replace it by a plain space"
        if plain == "space"
        else f"replace it by the plain {plain}"
    )
    return PenstockError(
        "SQL-1002",
        f"the character {shown} is not allowed in SQL",
        span=Span(start, start + 1),
        hint=hint,
        sqlstate="42601",
    )
