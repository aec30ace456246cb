"""Trees as text, with ├── and └──."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def tree_text(root: T, lines: Callable[[T], Sequence[str]], children: Callable[[T], Sequence[T]]) -> str:
    """Return a tree, one node per ``lines`` (at least one each), children indented under it."""
    out: list[str] = []
    _write(root, "", "", lines, children, out)
    return "\n".join(out)


def _write(
    node: T,
    first: str,
    rest: str,
    lines: Callable[[T], Sequence[str]],
    children: Callable[[T], Sequence[T]],
    out: list[str],
) -> None:
    below = list(children(node))
    head, *more = lines(node)
    out.append(first + head)
    out.extend(f"{rest}{'│   ' if below else '    '}{line}" for line in more)
    for position, child in enumerate(below):
        last = position == len(below) - 1
        _write(
            child,
            rest + ("└── " if last else "├── "),
            rest + ("    " if last else "│   "),
            lines,
            children,
            out,
        )
