"""The layout of a statement: what fits a line is on one. The rest is broken at its clauses, then at commas,
then at AND and OR, then at parentheses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.planner.formatter.lexemes import Lexeme, blank_between
from penstock.planner.parser.token_stream import RESHAPING_WORDS

WIDTH = 100
STEP = 2
_CLOSES = {"(": ")", "[": "]", "<": ">", "CASE": "END"}
# clauses of a query by their first words; longer ones first
_QUERY = (
    ("UNION", "ALL"), ("UNION", "DISTINCT"), ("UNION",), ("INTERSECT", "ALL"), ("INTERSECT",),
    ("EXCEPT", "ALL"), ("EXCEPT",), ("MINUS",), ("SELECT", "DISTINCT"), ("SELECT", "ALL"), ("SELECT",),
    ("FROM",), ("WHERE",), ("GROUP", "BY"), ("HAVING",), ("QUALIFY",), ("WINDOW",), ("ORDER", "BY"),
    ("LIMIT",), ("OFFSET",), ("FETCH",), ("EMIT",), ("VALUES",), ("WITH",), ("MATCH_RECOGNIZE",),
    ("AGAINST", "BATCH"),
)  # fmt: skip
# DuckDB's statements PIVOT and UNPIVOT
_RESHAPING = (
    *((word,) for word in RESHAPING_WORDS), ("ON",), ("USING",), ("INTO", "NAME"), ("GROUP", "BY"),
    ("ORDER", "BY"), ("LIMIT",), ("OFFSET",), ("EMIT",), ("UNION", "ALL"), ("UNION",),
)  # fmt: skip
_JOIN = frozenset(("NATURAL", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER", "SEMI", "ANTI", "JOIN"))
_WINDOW = (("PARTITION", "BY"), ("ORDER", "BY"), ("ROWS",), ("RANGE",))
_MATCH = (
    ("PARTITION", "BY"), ("ORDER", "BY"), ("MEASURES",), ("ONE", "ROW"), ("ALL", "ROWS"), ("AFTER", "MATCH"),
    ("PATTERN",), ("SUBSET",), ("DEFINE",),
)  # fmt: skip
# their items are on lines of their own
_LISTS = frozenset(
    ("SELECT", "GROUP", "ORDER", "PARTITION", "VALUES", "WITH", "WINDOW", "MEASURES", "DEFINE")
)
# their conditions are broken at AND and OR
_CONDITIONS = frozenset(("WHERE", "HAVING", "QUALIFY", "ON"))
_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM")


@dataclass
class Group:
    """What is between two brackets, or between CASE and END."""

    open: Lexeme
    items: list[Node]
    close: Lexeme | None


Node = Lexeme | Group


@dataclass
class Line:
    """A line of the layout, indented by ``indent``; ``full``: a comment ends it, and nothing may follow."""

    indent: int
    text: str
    full: bool = False


def lay_out(lexemes: Sequence[Lexeme]) -> list[Line]:
    """Return the lines of one statement; comments before its first lexeme are not among them."""
    return _layout(_group(iter(lexemes), None), WIDTH, "statement", comments=False)


def _group(lexemes: Iterator[Lexeme], closing: str | None) -> list[Node]:
    """Return the nodes up to a closing bracket, which is the last of them, or up to the end."""
    nodes: list[Node] = []
    for lexeme in lexemes:
        mark = lexeme.word or lexeme.text
        # x.end, `case`: names
        named = bool(nodes) and isinstance(nodes[-1], Lexeme) and nodes[-1].text == "."
        if mark in _CLOSES and (lexeme.kind in ("symbol", "word", "angle")) and not named:
            # a < b: an operator
            if mark == "<" and lexeme.kind != "angle":
                nodes.append(lexeme)
                continue
            inner = _group(lexemes, _CLOSES[mark])
            last = inner[-1] if inner else None
            closed = isinstance(last, Lexeme) and (last.word or last.text) == _CLOSES[mark]
            close = last if closed and isinstance(last, Lexeme) else None
            nodes.append(Group(lexeme, inner[:-1] if closed else inner, close))
            continue
        nodes.append(lexeme)
        # a parenthesis inside of PATTERN (..) closes nothing
        if closing is not None and mark == closing and not named and lexeme.kind != "pattern":
            return nodes
    return nodes


def _leaves(nodes: Sequence[Node]) -> Iterator[Lexeme]:
    for node in nodes:
        if isinstance(node, Lexeme):
            yield node
            continue
        yield node.open
        yield from _leaves(node.items)
        if node.close is not None:
            yield node.close


def _first(node: Node) -> Lexeme:
    return node if isinstance(node, Lexeme) else node.open


def _last(nodes: Sequence[Node]) -> Lexeme:
    node = nodes[-1]
    if isinstance(node, Lexeme):
        return node
    return node.close or _last([node.open, *node.items])


def _word(node: Node) -> str:
    return node.word if isinstance(node, Lexeme) else ""


def flat(nodes: Sequence[Node]) -> str | None:
    """Return the nodes as one line, without the comments before the first; ``None`` when a comment inside
    needs a line of its own.
    """
    out: list[str] = []
    before: Lexeme | None = None
    for lexeme in _leaves(nodes):
        if before is not None:
            if lexeme.before or before.ends_line:
                return None
            if blank_between(before, lexeme):
                out.append(" ")
        out.append(lexeme.shown)
        before = lexeme
    return "".join(out)


def _width(nodes: Sequence[Node], text: str) -> int:
    """Return the width of a flat text without the comments at its end, which may be longer than a line."""
    last = _last(nodes)
    return len(text) - (len(last.shown) - len(last.text) if last.ends_line else 0)


def _layout(nodes: Sequence[Node], room: int, kind: str, *, comments: bool = True) -> list[Line]:
    """Return the lines of nodes. ``kind`` says which clauses there may be: those of a statement, a query, a
    window, a match or none.
    """
    if not nodes:
        return []
    lines = [Line(0, text) for text in (_first(nodes[0]).before if comments else ())]
    text = flat(nodes)
    # columns and options have a line each, once their table does not fit a line
    each = kind == "list" and len(_split(nodes, ",")) > 1
    if text is not None and _width(nodes, text) <= room and not each:
        return [*lines, Line(0, text, _last(nodes).ends_line)]
    if kind == "statement":
        return lines + _statement(nodes, room)
    parts = list(_clauses(nodes, kind))
    if len(parts) == 1:
        return lines + _clause(nodes, room, kind)
    return lines + [
        line for number, part in enumerate(parts) for line in _layout(part, room, kind, comments=number > 0)
    ]


def _statement(nodes: Sequence[Node], room: int) -> list[Line]:
    """Return the lines of a statement: what comes before its query, then the clauses of the query."""
    parts = _split(nodes, ";")
    # BEGIN STATEMENT SET; INSERT ..; INSERT ..; END;
    if len(parts) > 1:
        opened = next((i + 1 for i, node in enumerate(parts[0]) if _word(node) == "BEGIN" and i), 0)
        parts[:1] = [part for part in (parts[0][:opened], parts[0][opened:]) if part]
        return [
            line
            for number, part in enumerate(parts)
            for line in _indented(
                _layout(part, room, "statement", comments=number > 0),
                STEP if 0 < number < len(parts) - 1 else 0,
            )
        ]
    start = next((index for index in range(len(nodes)) if _begins_query(nodes, index)), len(nodes))
    head, query = nodes[:start], nodes[start:]
    return [
        *_layout(head, room, "head", comments=False),
        *_layout(query, room, _query_kind(query), comments=bool(head)),
    ]


def _clauses(nodes: Sequence[Node], kind: str) -> Iterator[list[Node]]:
    """Yield the clauses of a sequence, each with the words that begin it."""
    part: list[Node] = []
    for index, node in enumerate(nodes):
        if part and _begins_clause(nodes, index, kind):
            yield part
            part = []
        part.append(node)
    if part:
        yield part


def _begins_query(nodes: Sequence[Node], index: int) -> bool:
    word = _word(nodes[index])
    following = nodes[index + 1] if index + 1 < len(nodes) else None
    # WITH (..) are options, WITH a AS (..) is a query
    if word == "WITH":
        return isinstance(following, Lexeme) and following.kind in ("word", "quoted")
    if index == 0 and isinstance(nodes[0], Group):
        return nodes[0].open.text == "(" and _is_query(nodes[0].items)
    # PIVOT t ON ..; pivot is a name elsewhere
    if word in RESHAPING_WORDS:
        return any(_word(node) == "ON" for node in nodes[index + 2 :])
    return word in ("SELECT", "VALUES")


def _query_kind(nodes: Sequence[Node]) -> str:
    return "reshaping" if nodes and _word(nodes[0]) in RESHAPING_WORDS else "query"


def _is_query(nodes: Sequence[Node]) -> bool:
    return bool(nodes) and (
        _word(nodes[0]) in _QUERY_WORDS
        or (_word(nodes[0]) in RESHAPING_WORDS and _begins_query(nodes, 0))
        or (isinstance(nodes[0], Group) and nodes[0].open.text == "(" and _is_query(nodes[0].items))
    )


def _begins_clause(nodes: Sequence[Node], index: int, kind: str) -> bool:
    word = _word(nodes[index])
    if not word or not _head(nodes[index:], kind):
        return False
    before = _first(nodes[index - 1]) if index else None
    following = _first(nodes[index + 1]) if index + 1 < len(nodes) else None
    # t.window, window.start: names
    if (before is not None and before.text == ".") or (following is not None and following.text == "."):
        return False
    # * EXCEPT (a), IS DISTINCT FROM b: no clauses
    if before is not None and (word, before.word or before.text) in (("EXCEPT", "*"), ("FROM", "DISTINCT")):
        return False
    # LEFT JOIN begins at LEFT; left(a, 1) is a function
    if word in _JOIN:
        return _begins_join(nodes, index)
    return True


def _begins_join(nodes: Sequence[Node], index: int) -> bool:
    if index and _word(nodes[index - 1]) in _JOIN:
        return False
    words = [_word(node) for node in nodes[index : index + 4]]
    return "JOIN" in words and all(word in _JOIN for word in words[: words.index("JOIN")])


def _head(nodes: Sequence[Node], kind: str) -> int:
    """Return how many nodes the head of a clause has; 0 when no clause begins here."""
    heads = {"query": _QUERY, "reshaping": _RESHAPING, "window": _WINDOW, "match": _MATCH}.get(kind, ())
    words = tuple(_word(node) for node in nodes[:2])
    for head in heads:
        if words[: len(head)] == head:
            return len(head)
    return 1 if kind == "query" and words[:1] and words[0] in _JOIN else 0


def _clause(nodes: Sequence[Node], room: int, kind: str) -> list[Line]:
    """Return the lines of one clause that does not fit a line."""
    size = _head(nodes, kind)
    # SELECT /*+ hint */
    while size and size < len(nodes) and _first(nodes[size]).kind == "hint":
        size += 1
    head, body = nodes[:size], nodes[size:]
    word = _word(nodes[0])
    if size and body:
        if word in _CONDITIONS:
            return _conditions(nodes, room, STEP)
        items = _split(body, ",")
        if word in _LISTS or len(items) > 1:
            return [*_flow(head, room), *_indented(_items(items, room - STEP), STEP)]
        # JOIN t ON a = b AND c = d
        at = next((i for i, node in enumerate(nodes) if _word(node) == "ON"), 0) if word in _JOIN else 0
        if at:
            return [
                *_layout(nodes[:at], room, "", comments=False),
                *_indented(_layout(nodes[at:], room - STEP, "on"), STEP),
            ]
        return _flow(nodes, room)
    if kind == "on":
        return _conditions(nodes, room, STEP)
    items = _split(nodes, ",")
    if len(items) > 1:
        return _items(items, room, comments=False)
    # the columns and options of CREATE TABLE are a list
    return _flow(nodes, room, "list") if kind == "head" else _conditions(nodes, room, 0)


def _split(nodes: Sequence[Node], symbol: str) -> list[list[Node]]:
    """Return the items between symbols, each with the symbol behind it."""
    items: list[list[Node]] = [[]]
    for node in nodes:
        # a semicolon belongs to the last item
        items[-1].append(node)
        if _first(node).text == symbol and isinstance(node, Lexeme):
            items.append([])
    return [item for item in items if item]


def _items(items: list[list[Node]], room: int, *, comments: bool = True) -> list[Line]:
    """Return the lines of a list: one an item, or many short values a line."""
    if len(items) > 8 and all(len(item) <= 2 and _is_value(item) for item in items):
        return _flow([node for item in items for node in item], room)
    return [
        line
        for number, item in enumerate(items)
        for line in _layout(item, room, "", comments=comments or number > 0)
    ]


def _is_value(item: Sequence[Node]) -> bool:
    return isinstance(item[0], Lexeme) and item[0].kind in ("number", "string")


def _conditions(nodes: Sequence[Node], room: int, step: int) -> list[Line]:
    """Return the lines of a condition: AND and OR begin one, those inside BETWEEN do not."""
    parts: list[list[Node]] = [[]]
    between = 0
    for node in nodes:
        word = _word(node)
        if word == "BETWEEN":
            between += 1
        elif word == "AND" and between:
            between -= 1
        elif word in ("AND", "OR"):
            parts.append([])
        parts[-1].append(node)
    first, *others = parts
    # a part may still be a group that is too long
    return [
        *_flow(first, room),
        *(
            line
            for part in others
            for line in _indented(
                [*(Line(0, text) for text in _first(part[0]).before), *_flow(part, room - step)], step
            )
        ),
    ]


def _flow(nodes: Sequence[Node], room: int, inner: str | None = None) -> list[Line]:
    """Return nodes one behind the other. A group that does not fit is broken; a word that does not fit
    begins a line. Comments before the first node are not among the lines. ``inner`` is the kind of broken
    groups; by default what is in them says it.
    """
    lines: list[Line] = [Line(0, "")]
    before: Lexeme | None = None
    for node in nodes:
        current, first = lines[-1], _first(node)
        if before is not None and (first.before or current.full):
            lines += [Line(STEP, text) for text in first.before]
            current, before = Line(STEP, ""), None
            lines.append(current)
        glue = " " if before is not None and blank_between(before, first) else ""
        text = flat([node])
        wide = text is None or current.indent + len(current.text + glue) + _width([node], text) > room
        if text is not None and not wide:
            current.text += glue + text
        elif isinstance(node, Group):
            _break_group(node, glue, lines, room, inner)
        # too long for this line: it begins the next one, unless nothing separates it
        elif current.text and glue and first.text not in ("=", "AS"):
            lines.append(Line(STEP, text or first.shown))
        else:
            current.text += glue + (text or first.shown)
        before = _last([node])
        lines[-1].full = before.ends_line
    return lines


def _break_group(group: Group, glue: str, lines: list[Line], room: int, inner: str | None) -> None:
    """Append a group with its inner part on lines of its own."""
    current = lines[-1]
    inner = inner or _inner_kind(group, current.text)
    if group.open.word == "CASE":
        _break_case(group, glue, lines, room)
        return
    current.text += glue + group.open.shown
    current.full = group.open.ends_line
    indent = current.indent
    lines += _indented(_layout(group.items, room - indent - STEP, inner), indent + STEP)
    if group.close is not None:
        lines += [Line(indent + STEP, text) for text in group.close.before]
        lines.append(Line(indent, group.close.shown, group.close.ends_line))


def _inner_kind(group: Group, before: str) -> str:
    word = before.rsplit(" ", 1)[-1].upper()
    if _is_query(group.items):
        return _query_kind(group.items)
    if word == "MATCH_RECOGNIZE":
        return "match"
    return "window" if group.items and _head(group.items, "window") else ""


def _break_case(group: Group, glue: str, lines: list[Line], room: int) -> None:
    """Append CASE with a line for each WHEN and for ELSE."""
    parts: list[list[Node]] = [[group.open]]
    for node in group.items:
        if _word(node) in ("WHEN", "ELSE"):
            parts.append([])
        parts[-1].append(node)
    indent = lines[-1].indent
    head, *branches = parts
    opened = _flow(head, room - indent)
    lines[-1].text += glue + opened[0].text
    lines[-1].full = opened[0].full
    lines += _indented(opened[1:], indent)
    for branch in branches:
        lines += _indented(_layout(branch, room - indent - STEP, "head"), indent + STEP)
    if group.close is not None:
        lines += [Line(indent + STEP, text) for text in group.close.before]
        lines.append(Line(indent, group.close.shown, group.close.ends_line))


def _indented(lines: list[Line], by: int) -> list[Line]:
    return [Line(line.indent + by, line.text, line.full) for line in lines]
