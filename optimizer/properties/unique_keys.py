"""Unique keys: sets of columns no two rows of a node agree on."""

from __future__ import annotations

from collections.abc import Callable

from penstock.planner.logical.plan import Keys, LogicalPlan

_KEYS_MAX = 16


def unique_keys(node: LogicalPlan, below: Callable[[LogicalPlan], Keys]) -> Keys:
    """Return the unique keys of a node, given how to ask for those of its subplans; at most sixteen, the
    smallest ones.
    """
    keys = _minimal(node.unique_keys(tuple(map(below, node.subplans))))
    return (
        keys
        if len(keys) <= _KEYS_MAX
        else frozenset(sorted(keys, key=lambda key: (len(key), sorted(key)))[:_KEYS_MAX])
    )


def _minimal(keys: Keys) -> Keys:
    """A key that contains another says nothing new."""
    return frozenset(key for key in keys if not any(other < key for other in keys))
