"""The grammar of files in FROM: ``'path'``, and READ_CSV, READ_JSON and READ_PARQUET with options."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from penstock.catalog.connectors.filesystem import STANDARD_INPUT
from penstock.catalog.errors import PenstockError
from penstock.planner.parser.parser_context import ParserContext
from penstock.planner.parser.syntax_nodes import FileTable, OptionEntry

# by the name of the function, the format that it reads; the names are DuckDB's
FILE_FUNCTIONS = {
    "READ_CSV": "csv",
    "READ_CSV_AUTO": "csv",
    "READ_JSON": "json",
    "READ_JSON_AUTO": "json",
    "READ_NDJSON": "json",
    "READ_NDJSON_AUTO": "json",
    "READ_PARQUET": "parquet",
    "PARQUET_SCAN": "parquet",
    "READ_ARROW": "arrow",
}


def file_stem(path: str) -> str:
    """Return the name of a file without its directory and its suffixes."""
    return path.rstrip("/").rpartition("/")[2].partition(".")[0] or path


class FileParser:
    """Parses files in FROM. ``=>`` and ``=`` both give an option."""

    def __init__(self, context: ParserContext) -> None:
        self._context, self._tokens = context, context.tokens

    def path(self) -> FileTable:
        """Return the file of the string at the current token."""
        begin = self._tokens.index
        token = self._tokens.current
        self._tokens.advance()
        return self._node(begin, token, None, [])

    def call(self, begin: int, name: str) -> FileTable:
        """Return the file of a function, whose arguments begin at the current token."""
        if not self._tokens.at(TokenType.STRING):
            raise PenstockError(
                "SQL-1001",
                f"{name} reads one path",
                span=self._tokens.current_span(),
                hint=f"write {name}('path'), where * ? [..] and ** name many files of one kind",
                sqlstate="42601",
            )
        token = self._tokens.current
        self._tokens.advance()
        options = []
        while self._tokens.take(TokenType.COMMA):
            options.append(self._option(name))
        self._tokens.need(TokenType.R_PAREN, ")")
        return self._node(begin, token, FILE_FUNCTIONS[name.upper()], options)

    def _node(
        self, begin: int, token: Token, file_format: str | None, options: list[OptionEntry]
    ) -> FileTable:
        # the name by which its columns are called: orders of 'data/orders.csv.gz'
        stem = "stdin" if token.text in STANDARD_INPUT else file_stem(token.text)
        node = FileTable(this=exp.Identifier(this=stem, quoted=True), path=token.text, format=file_format)
        node.meta["entries"] = tuple(options)
        return self._tokens.spanned(begin, node)

    def _option(self, function: str) -> OptionEntry:
        begin = self._tokens.index
        name = self._tokens.identifier("option").name
        key_span = self._tokens.span_from(begin)
        if not self._tokens.take(TokenType.FARROW) and not self._tokens.take(TokenType.EQ):
            raise self._tokens.unexpected("=>")
        start = self._tokens.index
        value = self._context.scalar()
        span = self._tokens.span_from(start)
        return OptionEntry(name.lower(), self._text(value, function, name, start), key_span, span)

    def _text(self, value: exp.Expr, function: str, name: str, start: int) -> str:
        if isinstance(value, exp.Boolean):
            return "true" if value.this else "false"
        if isinstance(value, exp.Literal):
            return str(value.this)
        raise PenstockError(
            "SQL-1505",
            f"option {name} of {function} is no constant",
            span=self._tokens.span_from(start),
            hint=f"write a text, a number, TRUE or FALSE: {name} => '..'",
        )
