"""The nearest join in the logical plan: each left row with the one right row of its keys that is nearest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.logical.distribution import InputFacts, Requirement, by_keys
from penstock.planner.logical.joins.join import BinaryJoin, JoinFacts, JoinKind
from penstock.planner.logical.node_digest import Digest, hash_parts
from penstock.planner.logical.operator_facts import DerivedFacts, SettingReader
from penstock.planner.logical.plan import Keys, StateBound, StateFacts
from penstock.planner.logical.windows import demand


@dataclass(frozen=True)
class NearestJoin(BinaryJoin):
    """Each left row with the right row of equal keys whose ``values[1]`` is nearest to ``values[0]``: the
    greatest up to it (``latest``), or the least from it on. INNER.

    ``strict``: equal values do not match. Of right rows of one value ``order`` chooses the first: a column,
    and whether it descends and has its NULLs first. Then the columns ``ties`` do. Rows that are equal in all
    of them are alike to every reader.

    ``penstock.optimizer.rules.nearest_rows`` makes it of a Top-1 over a join. Its state is the rows of both
    sides, where that plan has their pairs.
    """

    values: tuple[int, int] = field(kw_only=True)
    latest: bool = field(kw_only=True)
    strict: bool = field(kw_only=True)
    order: tuple[tuple[int, bool, bool], ...] = field(kw_only=True)
    ties: tuple[int, ...] = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(self.kind is JoinKind.INNER, "a nearest join that is not inner")
        types = (self.left.schema[self.values[0]].type, self.right.schema[self.values[1]].type)
        demand(types[0] == types[1], "a nearest join of unlike values")

    @property
    def timing(self) -> str:
        return "Nearest"

    def loading_text(self) -> str:
        left, right = self.left.schema[self.values[0]].name, self.right.schema[self.values[1]].name
        sign = ("<" if self.latest else ">") + ("" if self.strict else "=")
        return f", the {'last' if self.latest else 'first'} {right} {sign} {left}"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> JoinFacts:
        ttl_ms = derived.ttl_ms(self)
        return JoinFacts(tuple(map(derived.insert_only, self.inputs)), ttl_ms=(ttl_ms, ttl_ms))

    def timing_digest(self, inputs: tuple[Digest, ...]) -> str:
        value, other = self.values
        columns = inputs[1].columns
        order = (part for column, *way in self.order for part in (columns[column], *map(str, way)))
        ties = (columns[column] for column in self.ties)
        ways = (str(self.latest), str(self.strict))
        head = ("nearest", inputs[0].columns[value], columns[other], *ways)
        return hash_parts(*head, "by", *order, "ties", *ties)

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        # each left row is emitted with one right row at most
        told = frozenset({*self.left_keys, self.values[0]})
        return inputs[0] | {told} if any(key <= told for key in inputs[0]) else inputs[0]

    def insert_only(self, inputs: tuple[bool, ...], loaded_first: tuple[int, ...] = ()) -> bool:
        # a nearer row displaces another
        return False

    def requires(self, inputs: tuple[InputFacts, ...], copied: int | None = None) -> tuple[Requirement, ...]:
        return by_keys(self.left_keys), by_keys(self.right_keys)

    def filterable_columns(self) -> tuple[Mapping[int, int], ...]:
        # without a right row another one would be the nearest
        return self.side_columns()[0], {}

    def time_columns(self) -> tuple[frozenset[int], frozenset[int]]:
        return frozenset({self.values[0]}), frozenset(
            {self.values[1], *(column for column, *_ in self.order), *self.ties}
        )

    def moved_times(self, left: Mapping[int, int], right: Mapping[int, int]) -> dict[str, Any]:
        return {
            "values": (left[self.values[0]], right[self.values[1]]),
            "order": tuple((right[column], *way) for column, *way in self.order),
            "ties": tuple(right[column] for column in self.ties),
        }

    def loaded_ports(self, facts: StateFacts) -> tuple[int, ...]:
        """None: rows of both sides are joined as they come."""
        return ()

    def state_bound(self, facts: StateFacts) -> StateBound:
        why = "rows are kept for ever, as any may be the nearest later; set table.exec.state.ttl"
        return self._grows(facts, "rows of both sides", why)

    def state_ttl_ms(self, facts: StateFacts) -> int:
        return facts.default_ttl_ms
