"""COPY: what it copies, in which direction, and in which format."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.catalog.errors import PenstockError, Span
from penstock.client.server.postgres.sql_words import SqlToken, unquoted

_OPTION_WORDS = ("FORMAT", "DELIMITER", "NULL", "HEADER", "QUOTE", "ESCAPE", "ENCODING", "FORCE_QUOTE")


@dataclass(frozen=True)
class CopyOptions:
    """The options of COPY, with the defaults of the format."""

    form: str = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'

    @property
    def is_binary(self) -> bool:
        """Whether it is PostgreSQL's binary format."""
        return self.form == "binary"


@dataclass(frozen=True)
class CopyStatement:
    """A parsed COPY. ``query`` is the text in parentheses, or ``SELECT .. FROM table``; ``offset`` is where
    it begins. ``table`` and ``columns`` are those of COPY .. FROM STDIN.
    """

    to_client: bool
    query: str
    offset: int
    table: str
    columns: tuple[str, ...]
    options: CopyOptions = field(default_factory=CopyOptions)


def parse_copy(sql: str, tokens: list[SqlToken]) -> CopyStatement:
    """Return a COPY. Raises CLI-6228 for one that this server does not do."""
    at, query, offset, table = 1, "", 0, ""
    columns: tuple[str, ...] = ()
    if at < len(tokens) and tokens[at].text == "(":
        # COPY (query) TO STDOUT
        end = _closing(tokens, at, sql)
        offset, query = tokens[at].end, sql[tokens[at].end : tokens[end].start]
        at = end + 1
    else:
        # COPY table [(columns)] TO | FROM
        begin = at
        while at < len(tokens) and tokens[at].text != "(" and tokens[at].upper not in ("TO", "FROM"):
            at += 1
        if at in (begin, len(tokens)):
            raise _refused("COPY names a table or a query in parentheses", sql)
        table, offset = sql[tokens[begin].start : tokens[at - 1].end], tokens[begin].start
        if tokens[at].text == "(":
            end = _closing(tokens, at, sql)
            columns = tuple(sql[t.start : t.end] for t in tokens[at + 1 : end] if t.text != ",")
            at = end + 1
    words = [token.upper for token in tokens[at : at + 2]]
    if words not in (["TO", "STDOUT"], ["FROM", "STDIN"]) or (words[0] == "FROM" and not table):
        raise _refused("COPY goes TO STDOUT, or a table's FROM STDIN", sql)
    if table and words[0] == "TO":
        query = f"SELECT {', '.join(columns) or '*'} FROM {table}"
    return CopyStatement(words[0] == "TO", query, offset, table, columns, _options(tokens[at + 2 :], sql))


def _closing(tokens: list[SqlToken], at: int, sql: str) -> int:
    depth = 0
    for position in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[position].text, 0)
        if depth == 0:
            return position
    raise _refused("a parenthesis of COPY is not closed", sql)


def _options(tokens: list[SqlToken], sql: str) -> CopyOptions:
    words = [token for token in tokens if token.text not in "(),=" and token.upper not in ("WITH", "AS")]
    if words and words[0].upper in ("BINARY", "CSV", "TEXT"):
        # the form before PostgreSQL 9: COPY t TO STDOUT CSV HEADER
        words.insert(0, SqlToken("word", "FORMAT", 0, 0))
    chosen: dict[str, str] = {}
    at = 0
    while at < len(words):
        name = words[at].upper
        if name not in _OPTION_WORDS:
            raise _refused(f"COPY has no option {words[at].text[:40]}", sql)
        has_value = at + 1 < len(words) and words[at + 1].upper not in _OPTION_WORDS
        chosen[name] = unquoted(words[at + 1].text) if has_value else "true"
        at += 2 if has_value else 1
    form = chosen.get("FORMAT", "text").lower()
    if form not in ("text", "csv", "binary") or chosen.get("ENCODING", "utf8").lower() not in (
        "utf8",
        "utf-8",
    ):
        raise _refused("COPY writes text, csv or binary, in UTF8", sql)
    is_csv = form == "csv"
    quote = chosen.get("QUOTE", '"')
    options = CopyOptions(
        form,
        chosen.get("DELIMITER", "," if is_csv else "\t").replace("\\t", "\t"),
        chosen.get("NULL", "" if is_csv else "\\N"),
        chosen.get("HEADER", "false").lower() in ("true", "on", "1", "match"),
        quote,
        chosen.get("ESCAPE", quote),
    )
    if len(options.delimiter) != 1 or len(options.quote) != 1 or len(options.escape) != 1:
        raise _refused("DELIMITER, QUOTE and ESCAPE of COPY are one character each", sql)
    return options


def _refused(why: str, sql: str) -> PenstockError:
    hint = "write COPY (query) TO STDOUT (FORMAT csv), or COPY table FROM STDIN (FORMAT csv)"
    return PenstockError("CLI-6228", why, span=Span(0, len(sql)), hint=hint, sqlstate="42601")
