"""What can be said of a plan's nodes: derived when asked, never stored in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness as table_boundedness
from penstock.catalog.tables import CatalogTable
from penstock.planner.expressions.nodes import Literal, SortKey
from penstock.planner.logical.aggregate import Aggregate, Phase
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.node_text import duration_text
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import Keys, LogicalPlan, StateBound
from penstock.planner.logical.scan import BoundedInput, Scan, Values
from penstock.planner.logical.time_attributes import WatermarkAssign, arrival_order

T = TypeVar("T")

# Joins multiply the keys of their sides: beyond this many, the longer ones are dropped.
_KEYS_MAX = 16

# The side that may be copied to every subtask: never one whose unmatched rows the join emits, for every
# subtask would emit them.
_COPYABLE = {
    JoinKind.INNER: (0, 1),
    JoinKind.LEFT: (1,),
    JoinKind.SEMI: (1,),
    JoinKind.ANTI: (1,),
    JoinKind.RIGHT: (0,),
    JoinKind.FULL: (),
}


class PlanFacts:
    """Properties of the nodes of plans. ``boundedness`` answers for tables; answers are remembered for the
    life of the object.

    ``state_ttl_ms``: the TTL of state where no hint sets another, 0 for none.
    """

    def __init__(
        self, boundedness: Callable[[CatalogTable], Boundedness] = table_boundedness, *, state_ttl_ms: int = 0
    ) -> None:
        self._boundedness = boundedness
        self.default_ttl_ms = state_ttl_ms
        self._known: dict[tuple[str, int], tuple[LogicalPlan, object]] = {}

    def _once(self, name: str, node: LogicalPlan, derive: Callable[[LogicalPlan], T]) -> T:
        """Derive a property of a node the first time; the node is kept alive with the answer, so its
        identity stays its own.
        """
        key = (name, id(node))
        # Nodes are frozen: an answer does not change.
        if key not in self._known:
            self._known[key] = (node, derive(node))
        return self._known[key][1]  # type: ignore[return-value]  # stored under the same name by the same derivation

    # -- how rows end
    # ------------------------------------------------------------------------------------------------

    def boundedness(self, node: LogicalPlan) -> Boundedness:
        """Return whether a node's rows end: UNBOUNDED if any source's do not, else REPLAY if any is a
        recording, else BOUNDED.
        """
        return self._once("boundedness", node, self._derive_boundedness)

    def _derive_boundedness(self, node: LogicalPlan) -> Boundedness:
        match node:
            # The connector answers, by its options.
            case Scan(table=table):
                return self._boundedness(table)
            case Values() | BoundedInput():
                return Boundedness.BOUNDED
        kinds = [self.boundedness(child) for child in node.inputs]
        # The strongest kind of any input is that of the node.
        for kind in (Boundedness.UNBOUNDED, Boundedness.REPLAY):
            if kind in kinds:
                return kind
        return Boundedness.BOUNDED

    def finite(self, node: LogicalPlan) -> bool:
        """Return whether a node's rows end by themselves."""
        return self.boundedness(node) is not Boundedness.UNBOUNDED

    def bounded(self, node: LogicalPlan) -> bool:
        """Return whether a node reads bounded tables only, so that it can be computed whole before
        anything else.
        """
        return self.boundedness(node) is Boundedness.BOUNDED

    def bounded_ports(self, join: BinaryJoin) -> tuple[int, ...]:
        """Return the side of a join that is loaded to its end first; the right one where both are bounded,
        none where neither is.

        A join settled by time loads no side that has a watermark, such as a stream that ends: its rows may be
        late.
        """
        return join.loaded_ports(self)

    def tells_time(self, node: LogicalPlan) -> bool:
        """Return whether a plan has a watermark of rows. A watermark of NULL, above what a backend computes,
        advances at the end only and does not count.
        """
        return self._once("tells_time", node, self._derive_tells_time)

    def _derive_tells_time(self, node: LogicalPlan) -> bool:
        if isinstance(node, WatermarkAssign) and not (
            isinstance(node.watermark, Literal) and node.watermark.value is None
        ):
            return True
        return any(map(self.tells_time, node.inputs))

    def copied(self, join: BinaryJoin) -> int | None:
        """Return the side of a join that a hint sends to every subtask, ``None`` where there is none or it
        cannot be heeded.
        """
        return None if join.copied is None or self.why_not_copied(join) is not None else join.copied

    def why_not_copied(self, join: BinaryJoin) -> str | None:
        """Return why a side that a hint wants copied is not."""
        if join.copied is None:
            return None
        # Each copy would pad the rows it has no partner for.
        if join.copied not in _COPYABLE[join.kind]:
            return (
                f"the {('left', 'right')[join.copied]} side of a {join.kind} join has rows without a "
                "partner, which every copy would emit"
            )
        # Both sides are streams that the watermark frees.
        if join.frees_by_time and not self.bounded_ports(join):
            return "the watermark frees rows of the join, which are partitioned by key"
        # A row and its retraction may be in different subtasks when rows do not move by key.
        if not self.insert_only(join.inputs[1 - join.copied]):
            return "the other side retracts rows, and a retraction must meet the row it retracts"
        return None

    # -- how rows change
    # ---------------------------------------------------------------------------------------------

    def insert_only(self, node: LogicalPlan) -> bool:
        """Return whether a node never takes a row back."""
        return self._once("insert_only", node, self._derive_insert_only)

    def _derive_insert_only(self, node: LogicalPlan) -> bool:
        loaded_first = self.bounded_ports(node) if isinstance(node, BinaryJoin) else ()
        return node.insert_only(tuple(map(self.insert_only, node.inputs)), loaded_first)

    def emits_upserts(self, node: LogicalPlan) -> bool:
        """Return whether a node leaves out the row before an update: its readers replace rows by key."""
        return self._once("emits_upserts", node, self._derive_emits_upserts)

    def _derive_emits_upserts(self, node: LogicalPlan) -> bool:
        return node.emits_upserts(tuple(map(self.emits_upserts, node.inputs)))

    def is_settled_by_time(self, node: Over) -> bool:
        """Return whether each row gets its values once, when time has passed it."""
        return node.timely and self.insert_only(node.input)

    def arrival_order(self, node: LogicalPlan, order: Sequence[SortKey]) -> int:
        """Return how an order over rows of a node breaks ties: 1 by arrival, -1 by arrival in reverse, 0 by
        all columns.
        """
        return arrival_order(node, order)

    def changelog(self, node: LogicalPlan) -> str:
        """Return a node's changelog mode in words: ``insert-only``, ``updates`` (old and new rows) or
        ``upserts`` (new rows, and deletions).
        """
        if self.insert_only(node):
            return "insert-only"
        return "upserts" if self.emits_upserts(node) else "updates"

    # -- what identifies rows and times
    # ---------------------------------------------------------------------------------

    def unique_keys(self, node: LogicalPlan) -> Keys:
        """Return sets of columns no two rows of a node agree on (the empty set: at most one row)."""
        return self._once("unique_keys", node, self._derive_unique_keys)

    def _derive_unique_keys(self, node: LogicalPlan) -> Keys:
        """Where late rows are dropped, a late retraction is dropped too: a row then stays beside the one that
        replaced it.
        """
        # A late retraction is dropped, so two rows may have the key.
        if node.drops_late_rows and not all(map(self.insert_only, node.inputs)):
            return frozenset()
        return _smallest_keys(node.unique_keys(tuple(map(self.unique_keys, node.subplans))))

    def upsert_key(self, node: LogicalPlan) -> tuple[int, ...] | None:
        """Return the smallest set of columns that identifies a row of a node, or None when only the whole
        row does.
        """
        # The fewest columns, then the leftmost: the same plan always has the same key.
        keys = sorted(self.unique_keys(node), key=lambda key: (len(key), sorted(key)))
        return tuple(sorted(keys[0])) if keys else None

    def time_attributes(self, node: LogicalPlan) -> tuple[int, ...]:
        """Return the positions of a node's event-time columns."""
        return tuple(i for i, field in enumerate(node.schema) if field.is_event_time)

    # -- how long it is kept
    # -----------------------------------------------------------------------------------------

    def side_ttl_ms(self, join: BinaryJoin, port: int) -> int:
        """Return the TTL of a row of a side of a join in milliseconds. 0: no TTL, or the watermark or a
        complete side frees it.
        """
        return join.side_ttl_ms(self, port)

    def ttl_ms(self, node: LogicalPlan) -> int:
        """Return the TTL of a group, a partition or the versions of a key in milliseconds. 0: no TTL, or the
        watermark frees it.
        """
        return node.state_ttl_ms(self)

    def unheeded_ttl(self, node: LogicalPlan) -> str | None:
        """Return why a node is not kept as long as a hint says, ``None`` where there is no hint or it is
        heeded.
        """
        if (
            isinstance(node, BinaryJoin)
            and node.ttl_ms is not None
            and not any(self.side_ttl_ms(node, port) for port in (0, 1))
            and any(node.ttl_ms)
        ):
            return (
                "rows are freed by the watermark"
                if node.frees_by_time
                else "a side that ends is loaded first and kept whole"
            )
        if isinstance(node, Aggregate | Over | PartitionTop) and node.ttl_ms and not self.ttl_ms(node):
            # The local part of a two-phase aggregate has no state; the note is at the global one.
            if isinstance(node, Aggregate) and node.phase is Phase.LOCAL:
                return None
            return (
                "there is one row for all"
                if isinstance(node, Aggregate)
                else "rows are freed by the watermark, or there is but one partition"
            )
        return None

    # -- what is kept
    # ------------------------------------------------------------------------------------------------

    def state(self, node: LogicalPlan) -> StateBound:
        """Return what a node keeps between rows, and what bounds it."""
        return self._once("state", node, self._derive_state)

    def _derive_state(self, node: LogicalPlan) -> StateBound:
        bound, ttl_ms = node.state_bound(self), node.state_ttl_ms(self)
        return StateBound(bound.keeps, None, duration_text(ttl_ms * 1000)) if ttl_ms else bound

    def state_bound(self, node: LogicalPlan) -> str:
        """Return ``bounded``, ``bounded by TTL ..``, or ``unbounded because ..`` for a node whose state
        grows as long as rows come.
        """
        bound = self.state(node)
        if bound.grows is None and bound.ttl is not None:
            return f"bounded by TTL {bound.ttl} (processing time)"
        return "bounded" if bound.grows is None else f"unbounded because {bound.grows}"


def _smallest_keys(keys: Keys) -> Keys:
    """Return the keys that contain no other, at most sixteen; a longer key says nothing new."""
    # A key with more columns than another one is unique because of that one.
    minimal = [key for key in keys if not any(other < key for other in keys)]
    return frozenset(sorted(minimal, key=lambda key: (len(key), sorted(key)))[:_KEYS_MAX])
