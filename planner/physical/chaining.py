"""Chaining: which operators share a task."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.logical.distribution import Edge, Forward
from penstock.planner.physical.operator_specs import OperatorSpec


@dataclass(frozen=True, eq=False)
class Site:
    """One operator of a job before it is chained: its spec, its number of subtasks, and by port the site
    and edge its rows come from.
    """

    spec: OperatorSpec
    parallelism: int
    inputs: tuple[tuple[Site, Edge], ...] = ()


def chains_of(sites: Sequence[Site]) -> list[list[Site]]:
    """Return the sites (given inputs first) grouped into chains, inputs first.

    A site joins the chain of its input when that is its only input, the edge between is forward, both have as
    many subtasks, and it alone reads it.
    """
    readers: dict[int, int] = {}
    for site in sites:
        for source, _ in site.inputs:
            readers[id(source)] = readers.get(id(source), 0) + 1
    chains: list[list[Site]] = []
    chain_of: dict[int, list[Site]] = {}
    for site in sites:
        if (
            has_one_input(site)
            and is_forward(site)
            and is_as_parallel(site)
            and readers[id(site.inputs[0][0])] == 1
        ):
            chain = chain_of[id(site.inputs[0][0])]
        else:
            chain = []
            chains.append(chain)
        chain.append(site)
        chain_of[id(site)] = chain
    return chains


def has_one_input(site: Site) -> bool:
    """Whether a site takes rows from one place; sources begin chains, and operators with several ports
    head them.
    """
    return len(site.inputs) == 1


def is_forward(site: Site) -> bool:
    """Whether the rows of a site's only input stay in their subtask."""
    return isinstance(site.inputs[0][1], Forward)


def is_as_parallel(site: Site) -> bool:
    """Whether a site has as many subtasks as its only input."""
    return site.parallelism == site.inputs[0][0].parallelism
