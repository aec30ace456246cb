"""EXPLAIN: every stage of planning as a tree or as JSON, and the job as a Mermaid graph. The caller passes
the facts shown beside nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.physical.operator_specs import Chain, ChainEdge, JobGraph

Annotate = Callable[[LogicalPlan], str]


def explain(plan: LogicalPlan, annotate: Annotate | None = None) -> str:
    """Return a logical plan as an indented tree; ``annotate`` returns a text to append to a node's line."""

    def lines(node: LogicalPlan) -> list[str]:
        note = annotate(node) if annotate is not None else ""
        return [f"{node.text()}  {note}" if note else node.text()]

    return tree_text(plan, lines, _below)


def _below(node: LogicalPlan) -> Sequence[LogicalPlan]:
    # the plan of a bounded backend is no input of the streaming plan, but it is shown below it
    return (node.plan,) if isinstance(node, BoundedInput) else node.inputs


def explain_json(
    plan: LogicalPlan, facts_of: Callable[[LogicalPlan], dict[str, str]] | None = None
) -> dict[str, Any]:
    """Return a logical plan as nested JSON-ready objects: node, text, columns, facts, inputs."""
    return {
        "node": plan.written_name,
        "text": plan.text(),
        "columns": [
            {"name": f.name, "type": str(f.type), "nullable": f.nullable, "role": f.role and f.role.value}
            for f in plan.schema
        ],
        "facts": facts_of(plan) if facts_of is not None else {},
        "inputs": [explain_json(child, facts_of) for child in _below(plan)],
    }


def explain_rules(trace: Iterable[tuple[str, LogicalPlan, LogicalPlan]]) -> str:
    """Return the plan before the first rule and after each rule that changed it, under the rule's name."""
    parts: list[str] = []
    for rule, before, after in trace:
        # the plan before the first rule is the bound one
        if not parts:
            parts.append(f"== bound\n{explain(before)}")
        # rules that changed nothing are left out
        if before != after:
            parts.append(f"== {rule}\n{explain(after)}")
    return "\n\n".join(parts)


def explain_job(
    graph: JobGraph, note: Callable[[str], str] = lambda operator_id: "", *, unaligned: bool = False
) -> str:
    """Return a job as trees of chains, sinks first; ``note`` returns a text for an operator id. A chain with
    several readers is drawn once and named afterwards.

    ``unaligned``: barriers may overtake rows; edges where they may not are marked.
    """
    # a tree begins at each chain without a reader, which are the sinks
    fed = {edge.source for edge in graph.edges}
    drawn: set[int] = set()
    roots = [chain for chain in graph.chains if chain.chain_id not in fed]
    return "\n".join(
        tree_text(
            _Branch(root, None),
            lambda b: _chain_lines(b, note, unaligned=unaligned),
            lambda b: _chain_inputs(b, graph, drawn),
        )
        for root in roots
    )


class _Branch:
    """A chain below one of its outgoing edges. ``overtakable``: barriers may overtake rows of that edge;
    ``again``: the chain has been drawn already.
    """

    def __init__(self, chain: Chain, edge: ChainEdge | None, overtakable: bool = False) -> None:
        self.chain = chain
        self.edge = edge
        self.overtakable = overtakable
        self.again = False


def _chain_inputs(branch: _Branch, graph: JobGraph, drawn: set[int]) -> list[_Branch]:
    by_id = {chain.chain_id: chain for chain in graph.chains}
    # a chain with several readers is drawn below the first of them, and only named below the others
    branch.again = branch.chain.chain_id in drawn
    if branch.again:
        return []
    drawn.add(branch.chain.chain_id)
    return [
        _Branch(by_id[edge.source], edge, graph.overtakable(edge))
        for edge in graph.inputs_of(branch.chain.chain_id)
    ]


def _chain_lines(branch: _Branch, note: Callable[[str], str], *, unaligned: bool) -> list[str]:
    chain, edge = branch.chain, branch.edge
    # → forward from chain 2 × 4: how rows arrive, then the chain that sends them
    turn = " (barriers wait their turn)" if unaligned and edge is not None and not branch.overtakable else ""
    arrow = "" if edge is None else f"{edge.edge.sign}{turn} from "
    head = f"{arrow}chain {chain.chain_id} × {chain.parallelism}"
    if branch.again:
        return [f"{head} (drawn above)"]
    return [
        head,
        *(
            f"{operator.name}  ({operator.operator_id}){note(operator.operator_id)}"
            # the last operator on top: the tree is read from the sink to the source
            for operator in reversed(chain.operators)
        ),
    ]


def job_json(graph: JobGraph) -> dict[str, Any]:
    """Return a job as JSON-ready objects: chains with their operators, and edges."""
    return {
        "max_parallelism": graph.max_parallelism,
        "chains": [
            {
                "chain": chain.chain_id,
                "parallelism": chain.parallelism,
                "operators": [
                    {"id": o.operator_id, "name": o.name, "kind": type(o).__name__, "columns": o.schema.names}
                    for o in chain.operators
                ],
            }
            for chain in graph.chains
        ],
        "edges": [
            {"source": e.source, "target": e.target, "port": e.port, "edge": e.edge.sign} for e in graph.edges
        ],
    }


def mermaid(graph: JobGraph) -> str:
    """Return a job as a Mermaid flowchart, one box per chain."""
    out = ["flowchart LR"]
    for chain in graph.chains:
        # a double quote would end the label
        label = "<br/>".join(operator.name.replace('"', "'") for operator in chain.operators)
        out.append(f'  c{chain.chain_id}["{label}<br/>× {chain.parallelism}"]')
    out += [f'  c{edge.source} -->|"{edge.edge.sign}"| c{edge.target}' for edge in graph.edges]
    return "\n".join(out)


T = TypeVar("T")


def tree_text(root: T, lines: Callable[[T], Sequence[str]], children: Callable[[T], Sequence[T]]) -> str:
    """Return a tree: ``lines`` returns at least one line per node, and children are indented below it."""
    out: list[str] = []
    _write(root, "", "", lines, children, out)
    return "\n".join(out)


def _write(
    node: T,
    prefix: str,
    indent: str,
    lines: Callable[[T], Sequence[str]],
    children: Callable[[T], Sequence[T]],
    out: list[str],
) -> None:
    # lines of one node, then its inputs; the bar continues beside them unless the node is the last one
    below = list(children(node))
    head, *more = lines(node)
    out.append(prefix + head)
    out.extend(f"{indent}{'│   ' if below else '    '}{line}" for line in more)
    for position, child in enumerate(below):
        last = position == len(below) - 1
        _write(
            child,
            indent + ("└── " if last else "├── "),
            indent + ("    " if last else "│   "),
            lines,
            children,
            out,
        )
