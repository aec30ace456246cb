"""Scripts: a text is split at its semicolons, and each piece is parsed into a statement node."""

from __future__ import annotations

from collections.abc import Iterator

from lark.exceptions import VisitError
from sqlglot import exp

from penstock.catalog.errors import PenstockError, SourceText, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.secrets import KNOWN
from penstock.planner.parser.hints import refuse_other_hints
from penstock.planner.parser.query_parser import parse_query
from penstock.planner.parser.scanner import allow_depth, check_text, scan
from penstock.planner.parser.syntax_hints import syntax_hint
from penstock.planner.parser.syntax_nodes import OptionEntry
from penstock.planner.parser.token_stream import QUERY_WORDS, TABLE_STATEMENTS
from penstock.planner.statements.builder import StatementBuilder
from penstock.planner.statements.grammar import parse_tree
from penstock.planner.statements.nodes import ExecuteStatementSet, Explain, Insert, Query, Statement

MAX_ERRORS = 20

# statements of other engines by their first words, with what to do instead
_NOT_YET: dict[tuple[str, ...], str] = {
    ("TRUNCATE",): "INSERT OVERWRITE t SELECT * FROM t WHERE FALSE empties a table without partitions",
    ("ANALYZE",): "no statistics are needed",
    ("COMPILE",): "run the statement itself",
}


@dataclass(frozen=True)
class ParsedStatement:
    """A statement of a script: its text without the semicolon, its offset, its ordinal from 1
    and its node.
    """

    text: str
    offset: int
    ordinal: int
    node: Statement


def _pieces(text: str) -> list[tuple[int, int, bool]]:
    """Return (start, end, whether a semicolon ends it) of every statement. Semicolons inside a statement set
    do not count; END closes the set.
    """
    # start is -1 between statements; words are the first six of a statement, before is the last token
    pieces: list[tuple[int, int, bool]] = []
    words: list[str] = []
    start, end, in_set, before = -1, 0, False, ""
    for kind, begin, stop in scan(text):
        piece = text[begin:stop].upper() if kind == "word" else kind
        # the statement ends
        if kind == "semicolon" and not in_set:
            if start >= 0:
                pieces.append((start, end, True))
            start, words, before = -1, [], ""
            continue
        start, end = (begin if start < 0 else start), stop
        # BEGIN STATEMENT SET, or EXECUTE STATEMENT SET BEGIN, opens a set
        if kind == "word" and len(words) < 6:
            words.append(piece)
            in_set = (
                in_set
                or words[-3:] == ["BEGIN", "STATEMENT", "SET"]
                or words[-4:] == ["EXECUTE", "STATEMENT", "SET", "BEGIN"]
            )
        # END closes the set only behind a semicolon or BEGIN: the END of a CASE does not
        if in_set and piece == "END" and before in ("semicolon", "BEGIN"):
            in_set = False
        before = piece
    # the last statement has no semicolon
    if start >= 0:
        pieces.append((start, end, False))
    return pieces


def split_script(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of every statement of a script, without semicolons, surrounding comments and empty
    statements.
    """
    return [(start, end) for start, end, _ in _pieces(text)]


def is_complete(text: str) -> bool:
    """Return whether the last statement of a text ends with a semicolon. One in a string, a comment or a
    statement set does not count.
    """
    pieces = _pieces(text)
    return bool(pieces) and pieces[-1][2]


def parse_statement(text: str) -> Statement:
    """Return the node of one statement without its semicolon. Raise SQL-10xx or SQL-16xx with a span into
    ``text``.
    """
    check_text(text)
    allow_depth()
    _refuse_early(text)
    try:
        node = _parsed(text)
    except PenstockError as error:
        raise _hinted_error(error, text) from None
    # most statements have no hint: a search of the text is cheaper than a walk over the tree
    if "/*+" in text:
        refuse_other_hints(text, _hinted(node), list(_target_options(node)))
    return node


def _parsed(text: str) -> Statement:
    if _is_query(text):  # most statements are: they need not wait for the statements' grammar to be read
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        return Query(text[start:end], parse_query(text[:end], start), span=Span(start, end))
    try:
        return StatementBuilder(text).transform(parse_tree(text))
    except VisitError as error:
        if isinstance(error.orig_exc, PenstockError):
            raise error.orig_exc from None
        raise error.orig_exc from error


def _hinted_error(error: PenstockError, text: str) -> PenstockError:
    """Return a syntax error with what to write instead, unless it says so already."""
    # hints of SQL-1001 are of one place in the grammar, those of other codes are general
    if error.span is not None and (error.code != "SQL-1001" or error.hint is None):
        error.hint = syntax_hint(error.code, text, error.span.start) or error.hint
    return error


def _hinted(node: Statement) -> Iterator[exp.Expr]:
    """Yield the nodes of a statement's queries that may carry hints: tables and SELECTs."""
    if isinstance(node, Query):
        yield from node.tree.find_all(exp.Table, exp.Select)
        return
    # statements that contain queries: INSERT, EXPLAIN, statement sets
    for part in vars(node).values():
        for inner in part if isinstance(part, tuple) else (part,):
            if isinstance(inner, Statement):
                yield from _hinted(inner)


def _target_options(node: Statement) -> Iterator[OptionEntry]:
    """Yield the options that hints give to the tables of INSERTs."""
    if isinstance(node, Insert):
        yield from node.options
    elif isinstance(node, ExecuteStatementSet):
        for insert in node.inserts:
            yield from insert.options
    elif isinstance(node, Explain):
        yield from _target_options(node.statement)


def parse_script(
    text: str, file: str | None = None, *, errors: list[PenstockError] | None = None
) -> list[ParsedStatement]:
    """Return the statements of a script. Raise the first error with its source attached, or collect up to
    ``MAX_ERRORS`` errors in ``errors`` and continue.
    """
    # before the first error: no message may show a password of the script
    KNOWN.learn(text)
    statements = []
    for ordinal, (start, end) in enumerate(split_script(text), 1):
        try:
            statements.append(
                ParsedStatement(text[start:end], start, ordinal, parse_statement(text[start:end]))
            )
        except PenstockError as error:
            # spans are relative to the statement; the offset makes them those of the script
            error.with_source(SourceText(text, file, ordinal), start)
            if errors is None:
                raise
            errors.append(error)
            if len(errors) >= MAX_ERRORS:
                break
    return statements


def parse_view_query(text: str) -> Query:
    """Return the query of a view from its stored text."""
    return Query(text, parse_query(text), span=Span(0, len(text)))


def _is_query(text: str) -> bool:
    kind, start, end = next(scan(text), ("", 0, 0))
    return text[start:end] == "(" or (
        kind == "word" and text[start:end].upper() in (*QUERY_WORDS, "TABLE", *TABLE_STATEMENTS)
    )


def _refuse_early(text: str) -> None:
    """Refuse statements without a grammar by their first words."""
    words: list[str] = []
    for kind, start, end in scan(text):
        # the longest entry of _NOT_YET has two words
        if kind != "word" or len(words) == 3:
            break
        words.append(text[start:end].upper())
        instead = _NOT_YET.get(tuple(words))
        if instead is not None:
            # the span covers the words from the first to the one that decides
            first = len(text) - len(text.lstrip())
            what = " ".join(words)
            raise PenstockError(
                "SQL-1601",
                f"{what} is not supported yet",
                span=Span(first, end),
                hint=instead,
                sqlstate="0A000",
            )
    if not words and not text.strip():
        raise PenstockError("SQL-1004", "the statement is empty", span=Span(0, 1), sqlstate="42601")
