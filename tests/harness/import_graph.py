"""Which file of the product imports which, and the circles among them. Imports inside functions count, those
for type checkers alone do not.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.harness.package_tree import PACKAGES

_NAMED_CLASS = re.compile(r"penstock(\.\w+)+:\w+")  # "module:class" in a table that is imported from
ROOT = Path(__file__).resolve().parent.parent.parent


@functools.cache
def tree_of(text: str) -> ast.Module:
    """Return the tree of a module, which nobody changes: many rules read the same 800 files."""
    return ast.parse(text)


@functools.cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a module: a walk through a tree takes as long as to parse it."""
    return tuple(ast.walk(tree_of(text)))


def _modules() -> dict[str, Path]:
    """Return the product's files by the name they are imported as."""
    found = {}
    for package in (*PACKAGES, "penstock"):
        for path in (ROOT / package).rglob("*.py"):
            parts = list(path.relative_to(ROOT).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            found[".".join(parts if package == "penstock" else ["penstock", *parts])] = path
    return found


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            for other in node.orelse:
                yield other
                yield from _runtime_nodes(other)
            continue
        yield node
        yield from _runtime_nodes(node)


def imported(tree: ast.Module, modules: Mapping[str, object]) -> set[str]:
    """Return the product's modules that a file imports, at its head or inside its functions."""
    names: set[str] = set()
    for node in _runtime_nodes(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole module"
            # a name of a package is a module of it, or a thing that its __init__ has
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                names.add(whole if whole in modules else str(node.module))
        elif isinstance(node, ast.Constant) and _NAMED_CLASS.fullmatch(str(node.value)):
            names.add(str(node.value).partition(":")[0])
    return {name for name in names if name in modules}


def circles(edges: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the sets of more than one module that reach each other (Tarjan's strongly connected
    components, without recursion).
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    found = []
    for start in edges:
        if start in order:
            continue
        order[start] = lowest[start] = len(order)
        open_modules.append(start)
        path = [(start, iter(sorted(edges[start])))]
        while path:
            module, others = path[-1]
            other = next(others, None)
            if other is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[module])
                if lowest[module] == order[module]:
                    at = open_modules.index(module)
                    circle = set(open_modules[at:])
                    del open_modules[at:]
                    if len(circle) > 1 or module in edges[module]:
                        found.append(circle)
            elif other not in order:
                order[other] = lowest[other] = len(order)
                open_modules.append(other)
                path.append((other, iter(sorted(edges[other]))))
            elif other in open_modules:
                lowest[module] = min(lowest[module], order[other])
    return found


@functools.cache
def imports_of_checkout() -> dict[str, set[str]]:
    """Return for each module of the checkout the modules it imports."""
    modules = _modules()
    return {
        name: imported(tree_of(path.read_text(encoding="utf-8")), modules) for name, path in modules.items()
    }
