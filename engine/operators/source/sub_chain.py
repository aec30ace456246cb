"""A chain of operators run inside another operator: a source over given splits and what follows it, its
rows taken by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import BuildOperator, Context, KeyGroups
from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.record_writer import TaskOutput
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.source.source import SourceOperator
from penstock.engine.task.operator_chain import ChainedOperator, OperatorChain
from penstock.planner.physical.operator_specs import OperatorSpec, SourceSpec


class _Hands(TaskOutput):
    """Where rows of the last operator go: held until they are taken."""

    def __init__(self) -> None:
        super().__init__([])
        self.held: list[Batch] = []
        self.time_us: int | None = None

    def collect(self, batch: Batch) -> None:
        self.held.append(batch)

    def watermark(self, time_us: int) -> None:
        self.time_us = time_us if self.time_us is None else max(self.time_us, time_us)

    def idle(self) -> None:
        """Nobody waits for time here."""


class InnerChain:
    """Reads exactly ``splits``, whatever else the table holds by now. The operators count for nobody but
    the one they run in.
    """

    def __init__(
        self,
        specs: Sequence[OperatorSpec],
        options: JobOptions,
        outer: Context,
        splits: Sequence[str],
        build: BuildOperator,
    ) -> None:
        """``outer``: the context of the operator it runs in; ``build`` makes an operator of a spec."""
        source, *others = specs
        assert isinstance(source, SourceSpec)
        unwatched = {
            key: value for key, value in source.table.options.items() if key != "source.monitor-interval"
        }
        source = replace(source, table=replace(source.table, options=unwatched))
        groups = KeyGroups(0, outer.key_groups.max_parallelism, outer.key_groups.max_parallelism)
        made = [
            ChainedOperator(
                build(spec, options),
                Context(
                    spec.operator_id,
                    spec.name,
                    0,
                    1,
                    groups,
                    outer.clock,
                    OperatorMetrics(),
                    outer.services,
                    outer.job_id,
                    outer.attempt,
                ),
            )
            for spec in (source, *others)
        ]
        self._splits = sorted(splits)
        self._hands = _Hands()
        self._chain = OperatorChain(made, self._hands, incremental=False)
        self._chain.open()
        self._reader = made[0].operator
        assert isinstance(self._reader, SourceOperator)
        self._reader.restore_items(
            [{"split": split, "position": None, "finished": False} for split in self._splits]
        )
        self._open = True

    def step(self) -> bool:
        """Read a piece; return whether there may be more."""
        ended = self._chain.poll().ended
        self._chain.settle()
        return not ended

    def taken(self) -> list[tuple[str, Batch]]:
        """Return what came out since the last time, with the split it is of (as far as the last operator
        still tells).
        """
        held, self._hands.held = self._hands.held, []
        return [(self._splits[batch.origin], batch) for batch in held]

    def ended(self) -> list[tuple[str, Batch]]:
        """End the operators, and return what they still had."""
        while not self._chain.end() and self._chain.under_way:
            self._chain.settle()
        return self.taken()

    @property
    def time_us(self) -> int:
        """The watermark that came out last, the least int64 when none did."""
        return -(2**63) if self._hands.time_us is None else self._hands.time_us

    def close(self) -> None:
        """Release what is open."""
        if self._open:
            self._open = False
            self._chain.close()
