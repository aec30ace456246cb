"""Regular expressions of RE2 as trees: those that a table of states can search. RE2 searches all others."""

from __future__ import annotations

import re
import unicodedata

from penstock.catalog.frozen_dataclass import dataclass

Ranges = tuple[tuple[int, int], ...]
LAST_CODE = 0x10FFFF
_MOST_COPIES = 200
"""Copies of a part that is repeated by number: more make too many states."""
_MOST_DEPTH = 50
"""Groups within groups."""

_DIGITS: Ranges = ((48, 57),)
_WORDS: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
# \v is none of \s, but of [:space:]
_BLANKS: Ranges = ((9, 10), (12, 13), (32, 32))
_CLASSES: dict[str, Ranges] = {"d": _DIGITS, "w": _WORDS, "s": _BLANKS}
_NAMED_CLASSES: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORDS,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_CONTROLS = {"t": 9, "n": 10, "f": 12, "r": 13, "v": 11, "a": 7}
_COUNTED = re.compile(r"\{(\d+)(,(\d*))?\}")
_FLAGS = re.compile(r"\(\?([is]*)(?:-([is]+))?([:)])")
_NAMED_GROUP = re.compile(r"\(\?P?<[A-Za-z_]")
_NAME = re.compile(r"\(\?P?<[A-Za-z_][A-Za-z0-9_]*>")
_NAMED_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")
_HEX = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
# letters outside ASCII that are equal to one of it in another case
_ALSO = {ord("k"): 0x212A, ord("s"): 0x17F}


@dataclass(frozen=True)
class Letters:
    """One character of some ranges, which are sorted and disjoint."""

    ranges: Ranges


@dataclass(frozen=True)
class Sequence:
    """Parts one after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of several parts; an earlier one is preferred."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Repeated:
    """A part several times; ``most`` is ``None`` for any number. A greedy one prefers more."""

    part: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True)
class CapturingGroup:
    """A capturing group, numbered from 1."""

    number: int
    part: Node


@dataclass(frozen=True)
class Bound:
    """The beginning or the end of the text."""

    is_end: bool


Node = Letters | Sequence | Choice | Repeated | CapturingGroup | Bound


class Unsupported(Exception):
    """A pattern that is left to RE2."""


def parse_regex(pattern: str) -> Node:
    """Return the tree of a pattern that RE2 accepts. Raise Unsupported for one that is left to RE2: with word
    boundaries, lines, classes of Unicode, or a repeated part that may be empty.
    """
    return _Parser(pattern).parse()


def group_count(node: Node) -> int:
    """Return the number of capturing groups."""
    if isinstance(node, CapturingGroup):
        return max(node.number, group_count(node.part))
    if isinstance(node, Repeated):
        return group_count(node.part)
    return max(map(group_count, node.parts), default=0) if isinstance(node, Sequence | Choice) else 0


def is_nullable(node: Node) -> bool:
    """Return whether a part may match the empty text."""
    if isinstance(node, Letters):
        return False
    if isinstance(node, Sequence):
        return all(map(is_nullable, node.parts))
    if isinstance(node, Choice):
        return any(map(is_nullable, node.parts))
    if isinstance(node, Repeated):
        return node.least == 0 or is_nullable(node.part)
    return is_nullable(node.part) if isinstance(node, CapturingGroup) else True


def has_start(node: Node) -> bool:
    """Return whether the beginning of the text is asked for anywhere."""
    if isinstance(node, Bound):
        return not node.is_end
    if isinstance(node, Repeated | CapturingGroup):
        return has_start(node.part)
    return any(map(has_start, node.parts)) if isinstance(node, Sequence | Choice) else False


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._groups = self._depth = 0
        self._without_case = False
        self._dot_is_any = False

    def parse(self) -> Node:
        node = self._choice()
        if self._at < len(self._text):
            raise Unsupported
        return node

    def _follows(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _choice(self) -> Node:
        # flags hold until the group ends
        flags = self._without_case, self._dot_is_any
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise Unsupported
        parts = [self._sequence()]
        while self._follows("|"):
            self._at += 1
            parts.append(self._sequence())
        self._without_case, self._dot_is_any = flags
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if (flags := _FLAGS.match(self._text, self._at)) and flags[3] == ")":
                self._at = flags.end()
                self._set_flags(flags)
            else:
                parts.append(self._repeated(self._atom()))
        return Sequence(tuple(parts))

    def _set_flags(self, flags: re.Match[str]) -> None:
        on, off = flags[1], flags[2] or ""
        self._without_case = ("i" in on or self._without_case) and "i" not in off
        self._dot_is_any = ("s" in on or self._dot_is_any) and "s" not in off

    def _repeated(self, atom: Node) -> Node:
        bounds: tuple[int, int | None] | None = None
        if self._at < len(self._text):
            bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._text[self._at])
        if bounds is not None:
            self._at += 1
        elif counted := _COUNTED.match(self._text, self._at):
            least = int(counted[1])
            bounds = least, least if counted[2] is None else int(counted[3]) if counted[3] else None
            self._at = counted.end()
        else:
            return atom
        greedy = not self._follows("?")
        self._at += not greedy
        # RE2 refuses a second sign, and has rules of its own for parts that may be empty
        if is_nullable(atom) or bounds[1] == 0 or max(bounds[0], bounds[1] or 0) > _MOST_COPIES:
            raise Unsupported
        if self._at < len(self._text) and (
            self._text[self._at] in "*+?" or _COUNTED.match(self._text, self._at)
        ):
            raise Unsupported
        return Repeated(atom, bounds[0], bounds[1], greedy)

    def _atom(self) -> Node:
        letter = self._text[self._at]
        if letter == "(":
            return self._group()
        if letter == "[":
            return self._class()
        if letter == "\\":
            return self._escape()
        self._at += 1
        if letter in "^$":
            return Bound(letter == "$")
        if letter == ".":
            return Letters(((0, LAST_CODE),) if self._dot_is_any else ((0, 9), (11, LAST_CODE)))
        if letter in "*+?":
            raise Unsupported
        return self._letters([(ord(letter), ord(letter))])

    def _group(self) -> Node:
        if flags := _FLAGS.match(self._text, self._at):
            self._at = flags.end()
            outer = self._without_case, self._dot_is_any
            self._set_flags(flags)
            node = self._choice()
            self._without_case, self._dot_is_any = outer
        elif name := _NAME.match(self._text, self._at):
            self._at = name.end()
            node = self._captured()
        elif self._follows("(?"):
            raise Unsupported
        else:
            self._at += 1
            node = self._captured()
        if not self._follows(")"):
            raise Unsupported
        self._at += 1
        return node

    def _captured(self) -> Node:
        self._groups += 1
        number = self._groups
        return CapturingGroup(number, self._choice())

    def _escape(self) -> Node:
        following = self._text[self._at + 1 : self._at + 2]
        if following in ("A", "z"):
            self._at += 2
            return Bound(following == "z")
        ranges = self._class_escape()
        if ranges is not None:
            return Letters(tuple(ranges))
        code = self._code()
        return self._letters([(code, code)])

    def _class_escape(self) -> list[tuple[int, int]] | None:
        """Read ``\\d`` and its kin, if one follows."""
        following = self._text[self._at + 1 : self._at + 2]
        if self._text[self._at] != "\\" or following.lower() not in _CLASSES:
            return None
        self._at += 2
        ranges = self._folded(list(_CLASSES[following.lower()]))
        return ranges if following.islower() else _inverted(ranges)

    def _code(self) -> int:
        """Read one character, which may be escaped."""
        letter = self._text[self._at]
        self._at += 1
        if letter != "\\":
            return ord(letter)
        if number := _HEX.match(self._text, self._at - 1):
            self._at = number.end()
            return int(number[1] or number[2], 16)
        escaped = self._text[self._at : self._at + 1]
        self._at += 1
        if escaped in _CONTROLS:
            return _CONTROLS[escaped]
        # letters and digits have meanings that are left to RE2
        if not escaped.isascii() or escaped.isalnum() or not escaped:
            raise Unsupported
        return ord(escaped)

    def _class(self) -> Node:
        self._at += 1
        inverted = self._follows("^")
        self._at += inverted
        ranges: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self._follows("]"):
            is_first = False
            if self._at >= len(self._text):
                raise Unsupported
            ranges.extend(self._class_part())
        self._at += 1
        merged = _merged(ranges)
        merged = _inverted(merged) if inverted else merged
        if not merged:
            raise Unsupported
        return Letters(tuple(merged))

    def _class_part(self) -> list[tuple[int, int]]:
        if named := _NAMED_CLASS.match(self._text, self._at):
            self._at = named.end()
            if named[2] not in _NAMED_CLASSES:
                raise Unsupported
            known = self._folded(list(_NAMED_CLASSES[named[2]]))
            return _inverted(known) if named[1] else known
        escaped = self._class_escape()
        if escaped is not None:
            return escaped
        first = last = self._code()
        if self._follows("-") and not self._text.startswith("-]", self._at):
            self._at += 1
            last = self._code()
        if first > last:
            raise Unsupported
        return self._folded([(first, last)])

    def _letters(self, ranges: list[tuple[int, int]]) -> Node:
        return Letters(tuple(self._folded(ranges)))

    def _folded(self, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return ranges with the same letters in the other case, where case does not count."""
        if not self._without_case:
            return _merged(ranges)
        if ranges[-1][1] > 127:
            raise Unsupported
        more = list(ranges)
        for first, last in ranges:
            for code in range(first, last + 1):
                other = ord(chr(code).swapcase())
                more.append((other, other))
                if (also := _ALSO.get(code | 32)) is not None and unicodedata.category(chr(code))[0] == "L":
                    more.append((also, also))
        return _merged(more)


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def _inverted(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    begin, inverted = 0, []
    for first, last in ranges:
        if begin < first:
            inverted.append((begin, first - 1))
        begin = last + 1
    if begin <= LAST_CODE:
        inverted.append((begin, LAST_CODE))
    return inverted


@dataclass(frozen=True)
class NamedGroups:
    """A regular expression whose capturing groups all have a name (``g1``, ``g2``, ..), and the number of
    groups.
    """

    pattern: str
    count: int


def named_groups(pattern: str) -> NamedGroups:
    """Return the pattern with its capturing groups named in order. Arrow only extracts named groups."""
    out: list[str] = []
    count, position, in_class = 0, 0, False
    while position < len(pattern):
        # four states: an escape, a character class, an opening bracket, anything else
        letter = pattern[position]
        # \( and \[ open nothing.
        if letter == "\\":
            out.append(pattern[position : position + 2])
            position += 2
            continue
        if letter == "[" and not in_class:
            in_class = True
        # []abc]: a bracket that comes first belongs to the class.
        elif letter == "]" and in_class and pattern[position - 1] != "[":
            in_class = False
        if letter == "(" and not in_class:
            # (..) captures, (?:..) does not, (?P<name>..) has a name already.
            if pattern[position + 1 : position + 2] != "?":
                count += 1
                letter = f"(?P<g{count}>"
            elif _NAMED_GROUP.match(pattern, position):
                count += 1
        out.append(letter)
        position += 1
    return NamedGroups("".join(out), count)
