"""The operators of a recursive term, run inside the operator of the recursive query."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import BuildOperator, Context, KeyedState, SplitEvent
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.planner.physical.operator_specs import Recursion


class TermPipeline:
    """Passes rows of a port of the recursion to the operators that read it, and returns the rows of the last.

    Its operators have no timers and emit nothing by watermarks: ``process`` returns all rows of a batch.
    """

    def __init__(self, node: Recursion, options: JobOptions, build: BuildOperator) -> None:
        self._node = node
        self._operators = [build(one.spec, options) for one in node.operators]
        # by source: the operators that read it, and the port they read it with
        self._readers: list[list[tuple[int, int]]] = [[] for _ in range(node.ports + len(self._operators))]
        for number, one in enumerate(node.operators):
            for port, source in enumerate(one.sources):
                self._readers[source].append((number, port))
        self._ended: set[tuple[int, int]] = set()
        self._results: list[Batch] = []
        self._outputs = [_Link(self, node.ports + number) for number in range(len(self._operators))]

    def open(self, outer: Context) -> None:
        """Open the operators; their rows count for no one else."""
        self._metrics = [OperatorMetrics() for _ in self._operators]
        for operator, one, metrics in zip(self._operators, self._node.operators, self._metrics, strict=True):
            spec = one.spec
            operator.open(replace(outer, operator_id=spec.operator_id, name=spec.name, metrics=metrics))

    def on_restored(self) -> None:
        """State is restored."""
        for operator in self._operators:
            operator.on_restored()

    def keyed_states(self) -> dict[str, KeyedState]:
        """Return the states of all operators, named by their number."""
        return {
            f"{number}.{name}": state
            for number, operator in enumerate(self._operators)
            for name, state in operator.keyed_states().items()
        }

    @property
    def state_entries(self) -> int:
        """The entries in the state of all operators."""
        return sum(metrics.state_entries for metrics in self._metrics)

    def process(self, port: int, batch: Batch) -> list[Batch]:
        """Process a batch of a port; return the rows of the term that it makes."""
        self.deliver(port, batch)
        results, self._results = self._results, []
        return results

    def deliver(self, source: int, batch: Batch) -> None:
        """Pass rows of a source to its readers."""
        if not batch.num_rows:
            return
        readers = self._readers[source]
        if source == self._node.ports + len(self._operators) - 1:
            self._results.append(batch)
        for number, port in readers:
            # pieces: nobody else waits for credit between them
            for _ in self._operators[number].on_batch(batch, port, self._outputs[number]) or ():
                pass

    def end_port(self, source: int) -> None:
        """End a port, and each operator all of whose inputs have ended: joins forget what only their rows
        would match.
        """
        for number, port in self._readers[source]:
            operator = self._operators[number]
            for _ in operator.on_port_end(port, self._outputs[number]) or ():
                pass
            self._ended.add((number, port))
            ports = range(len(self._node.operators[number].sources))
            if all((number, each) in self._ended for each in ports):
                self.end_port(self._node.ports + number)

    def close(self) -> None:
        """Close the operators."""
        with contextlib.ExitStack() as closing:
            for operator in self._operators:
                closing.callback(operator.close)


class _Link:
    """The output of one operator of the term."""

    def __init__(self, pipeline: TermPipeline, source: int) -> None:
        self._pipeline, self._source = pipeline, source

    def collect(self, batch: Batch) -> None:
        self._pipeline.deliver(self._source, batch)

    def watermark(self, time_us: int) -> None:
        """No operator of a term generates watermarks."""

    def idle(self) -> None:
        """No operator of a term reads idleness."""

    def split(self, event: SplitEvent) -> None:
        """No operator of a term reads a source."""
