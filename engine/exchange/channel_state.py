"""Channel state: the rows an unaligned barrier overtook, collected per channel, stored by key group, and put
back after a restore.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import numbers_of
from penstock.engine.api.row_pieces import LIMITS, take_in_pieces, take_rows
from penstock.engine.api.stream_elements import Batch, Element
from penstock.planner.logical.distribution import Edge, Partition

RESERVED = "@"
"""The prefix of the names of channel states; no operator declares such a name."""

# the value of "behind" of a row that is not late
_NOT_BEHIND = -(2**63)
# key_group, source, weight, behind; the columns of the rows follow
_OWN_COLUMNS = 4


@dataclass(frozen=True)
class EdgeTarget:
    """The target of an edge: the ``port`` of an operator, and the edge, which says which subtask owns a row
    at any parallelism.

    Rows partitioned by keys belong to their key groups, so rows of one key keep their order. Rows that are
    rebalanced keep no order, and are distributed anew.
    """

    operator_id: str
    port: int
    edge: Edge
    max_parallelism: int

    @property
    def received(self) -> str:
        """The state of the consuming operator for rows in front of its barriers."""
        return received_state(self.port)

    @property
    def unsent(self) -> str:
        """The state of the producing operator for rows a barrier overtook before they were sent."""
        return unsent_state(self.operator_id, self.port)

    def groups(self, pieces: Sequence[Batch]) -> np.ndarray:
        """Return the key group of every row of the pieces, end to end: uint16."""
        # a row goes back to the subtask that owns its key, at any parallelism
        if isinstance(self.edge, Partition):
            return np.concatenate([self._keyed(piece) for piece in pieces])
        # rebalanced rows belong to no key: spread evenly over all groups
        rows = sum(piece.num_rows for piece in pieces)
        return (np.arange(rows) * self.max_parallelism // max(rows, 1)).astype(np.uint16)

    def _keyed(self, piece: Batch) -> np.ndarray:
        from penstock.engine.api.key_groups import groups_of_hashes

        # numba: only jobs that exchange rows pay for it
        from penstock.engine.kernels.stable_hash import stable_hash

        assert isinstance(self.edge, Partition)
        # an exchange to one subtask: the owner of group 0
        if not self.edge.keys:
            return np.zeros(piece.num_rows, np.uint16)
        return groups_of_hashes(
            stable_hash([piece.rows.column(key) for key in self.edge.keys]), self.max_parallelism
        )


def received_state(port: int) -> str:
    """Return the name of the state that holds the channel state of a port of the operator it belongs to."""
    # @input.PORT, in the state of the consuming operator
    return f"{RESERVED}input.{port}"


def unsent_state(operator_id: str, port: int) -> str:
    """Return the name of the state that holds rows not yet sent by its operator, for a port of another
    operator.
    """
    # @output.OPERATOR.PORT, in the state of the producing operator
    return f"{RESERVED}output.{operator_id}.{port}"


@dataclass(frozen=True)
class ChannelStateTarget:
    """Where a row of channel state was going; ``left``: whether it had been sent."""

    operator_id: str
    port: int
    left: bool


def channel_state_target(operator_id: str, state: str) -> ChannelStateTarget | None:
    """Return where rows of a state were going, by the operator that stores it and its name; ``None`` for a
    state of an operator.
    """
    if not state.startswith(RESERVED):
        return None
    kind, _, edge_target = state.removeprefix(RESERVED).partition(".")
    # for @input there is no operator in the name: `target` is empty
    target, _, port = edge_target.rpartition(".")
    return ChannelStateTarget(operator_id if kind == "input" else target, int(port), kind == "input")


@dataclass
class ChannelRows:
    """Channel state of one channel, named by port and by the subtask it comes from."""

    port: int
    source: int
    batches: list[Batch] = field(default_factory=list)

    def add(self, elements: Iterable[Element]) -> None:
        """Add the rows among elements. Watermarks are not state: their generators emit them again. A barrier
        among them belongs to another checkpoint.
        """
        self.batches.extend(element for element in elements if isinstance(element, Batch))


def channel_state_table(edge_target: EdgeTarget, channels: Sequence[ChannelRows]) -> pa.Table | None:
    """Return channel state as keyed state: ``key_group``, ``source`` (subtask), ``weight``, ``behind``, then
    the rows' columns; ``None`` without rows.

    Rows of one key group and channel keep their order.
    """
    pieces = [(channel.source, piece) for channel in channels for piece in channel.batches if piece.num_rows]
    if not pieces:
        return None
    batches = [piece for _, piece in pieces]
    groups = edge_target.groups(batches)
    rows = pa.Table.from_batches([piece.rows for piece in batches])
    own = {
        "key_group": groups,
        "source": np.concatenate([np.full(piece.num_rows, source, np.int32) for source, piece in pieces]),
        "weight": np.concatenate(
            [
                np.ones(piece.num_rows, np.int64) if piece.weights is None else piece.weights
                for piece in batches
            ]
        ),
        "behind": np.concatenate(
            [
                np.full(piece.num_rows, _NOT_BEHIND) if piece.behind is None else piece.behind
                for piece in batches
            ]
        ),
    }
    # numbered: rows may have two columns of one name
    names = [*own, *(f"{index}.{name}" for index, name in enumerate(rows.column_names))]
    table = pa.Table.from_arrays(
        [*map(pa.array, own.values()), *rows.columns], schema=_schema(own, rows.schema, names)
    )
    # ascending groups, as for every keyed state; a stable sort keeps the order of rows within a group
    return take_rows(table, np.argsort(groups, kind="stable"))


def _schema(own: dict[str, np.ndarray], rows: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Return the columns of the state. Those of the rows keep their types, under unique names."""
    fields = [pa.field(name, pa.from_numpy_dtype(values.dtype)) for name, values in own.items()]
    return pa.schema(
        [*fields, *(column.with_name(name) for column, name in zip(rows, names[_OWN_COLUMNS:], strict=True))]
    )


def batches_of(table: pa.Table, max_rows: int) -> Iterator[tuple[int, Batch]]:
    """Yield the rows of a channel state with the source subtask of their channel, at most ``max_rows``, and
    about a batch's bytes, at a time.
    """
    rows = table.drop_columns(table.column_names[:_OWN_COLUMNS])
    # without the number in front
    schema = pa.schema([column.with_name(column.name.partition(".")[2]) for column in rows.schema])
    sources, weights, behind = (numbers_of(table.column(name)) for name in ("source", "weight", "behind"))
    # by channel: rows of one channel keep their order
    for source in np.unique(sources).tolist():
        mine = np.flatnonzero(sources == source)
        done = 0
        for piece in take_in_pieces(rows, mine, LIMITS.batch_bytes):
            for start in range(0, piece.num_rows, max_rows):
                part = piece.slice(start, max_rows)
                positions = mine[done + start : done + start + part.num_rows]
                yield (
                    source,
                    Batch(
                        pa.RecordBatch.from_arrays(part.columns, schema=schema),
                        _unless_all(weights[positions], 1),
                        _unless_all(behind[positions], _NOT_BEHIND),
                    ),
                )
            done += piece.num_rows


def _unless_all(values: np.ndarray, usual: int) -> np.ndarray | None:
    return None if (values == usual).all() else values
