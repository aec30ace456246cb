"""The syntax nodes of MATCH_RECOGNIZE."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class Semantics(exp.Expression):
    """``RUNNING call`` or ``FINAL call``: ``this`` the call, ``final``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "final": False}


class RowDefinition(exp.Expression):
    """``v AS condition`` in DEFINE: ``this`` the condition, ``alias`` the variable."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "alias": True}


class RowSubset(exp.Expression):
    """``U = (A, B)`` in SUBSET: ``this`` the new name, ``expressions`` the variables."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class AfterMatch(exp.Expression):
    """AFTER MATCH SKIP: ``kind`` past, next, first or last; ``this`` the variable of the latter two."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "kind": True}


class RowPattern(exp.Expression):
    """The text between PATTERN's parentheses: ``this`` as written; it stands at its place."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class RowMatches(exp.Expression):
    """``t MATCH_RECOGNIZE (..)`` in FROM; ``all_rows`` for ALL ROWS PER MATCH."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "partition": False,
        "order": False,
        "measures": False,
        "all_rows": False,
        "skip": False,
        "pattern": True,
        "within": False,
        "subsets": False,
        "defines": True,
        "alias": False,
    }
