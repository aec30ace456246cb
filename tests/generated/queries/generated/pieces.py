"""Queries as trees of text: every part knows what sort it is, so that a failing query can be made smaller
by replacing parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

_HOLE = re.compile(r"\{(\w+)\}")
Part = "str | Piece"


@dataclass(frozen=True)
class Piece:
    """A part of a query. ``theirs``: what other engines call it, where that differs; ``least``: the least
    text that may stand in its place.
    """

    sort: str
    parts: tuple[str | Piece, ...]
    theirs: tuple[str | Piece, ...] | None = None
    least: str | None = None

    def text(self, theirs: bool = False) -> str:
        parts = self.theirs if theirs and self.theirs is not None else self.parts
        return "".join(part if isinstance(part, str) else part.text(theirs) for part in parts)

    def __str__(self) -> str:
        return self.text()

    def below(self) -> Iterator[Piece]:
        """All pieces under this one, parents first."""
        for part in self.parts:
            if isinstance(part, Piece):
                yield part
                yield from part.below()

    def rebuilt(self, target: Piece, other: Piece, done: dict[int, Piece] | None = None) -> Piece:
        """The same tree with one piece (found by identity) replaced; what both wordings share they share
        again.
        """
        if self is target:
            return other
        known: dict[int, Piece] = {} if done is None else done
        if id(self) not in known:

            def changed(parts: tuple[str | Piece, ...]) -> tuple[str | Piece, ...]:
                return tuple(
                    part if isinstance(part, str) else part.rebuilt(target, other, known) for part in parts
                )

            known[id(self)] = replace(
                self, parts=changed(self.parts), theirs=None if self.theirs is None else changed(self.theirs)
            )
        return known[id(self)]


def made(
    sort: str, template: str, *, theirs: str | None = None, least: str | None = None, **holes: str | Piece
) -> Piece:
    """Fill the holes of a template with pieces or words."""
    return Piece(sort, _filled(template, holes), None if theirs is None else _filled(theirs, holes), least)


def _filled(template: str, holes: dict[str, str | Piece]) -> tuple[str | Piece, ...]:
    parts: list[str | Piece] = []
    place = 0
    for match in _HOLE.finditer(template):
        parts += [template[place : match.start()], holes[match[1]]]
        place = match.end()
    return tuple(part for part in (*parts, template[place:]) if part != "")


def joined(sort: str, between: str, pieces: list[Piece]) -> Piece:
    """Pieces one after the other; all but the first may go, with what is between."""
    parts: list[str | Piece] = [pieces[0]]
    parts += [Piece("more", (between, piece), least="") for piece in pieces[1:]]
    return Piece(sort, tuple(parts))


def smaller(tree: Piece) -> Iterator[Piece]:
    """Trees with one piece replaced by its least text or by a piece of its sort inside it."""
    nodes = [tree, *tree.below()]
    for node in nodes:
        if node.least is not None and node.text() != node.least:
            yield tree.rebuilt(node, Piece(node.sort, (node.least,)))
        for inner in node.below():
            if inner.sort == node.sort and inner.sort != "more":
                yield tree.rebuilt(node, inner)


def reduced(tree: Piece, fails: Callable[[Piece], bool], tries: int = 600) -> Piece:
    """Make a failing tree smaller as long as it fails."""
    going = True
    while going and tries > 0:
        going = False
        for candidate in sorted(smaller(tree), key=lambda piece: len(piece.text())):
            if len(candidate.text()) >= len(tree.text()) or tries <= 0:
                break
            tries -= 1
            if fails(candidate):
                tree, going = candidate, True
                break
    return tree
