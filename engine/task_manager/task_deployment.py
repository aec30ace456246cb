"""Task deployment: the tasks of a job graph, with channels between them and operators inside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.clock import Clock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.key_groups import key_group_range
from penstock.engine.api.operator import BuildOperator, Context, RestoredFrom, Services
from penstock.engine.api.row_arrivals import RowArrivals
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.checkpoint.restore import Restorer
from penstock.engine.connectors.in_process.late_rows import late_log
from penstock.engine.exchange.channel import Channel, ConsumerChannel, ProducerChannel, Wakeup
from penstock.engine.exchange.channel_state import EdgeTarget
from penstock.engine.exchange.input_gate import InputGate
from penstock.engine.exchange.record_writer import RecordWriter, TaskOutput, record_writer
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.storage.spill_files import SpillFiles
from penstock.engine.storage.storage import Storage
from penstock.engine.task.memory_budget import MemoryBudget
from penstock.engine.task.messages import OperatorEventReported, TaskId, TaskReport
from penstock.engine.task.operator_chain import ChainedOperator, OperatorChain
from penstock.engine.task.task import Task
from penstock.engine.task_manager.allocator import keep_freed_memory
from penstock.planner.logical.distribution import Forward
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.physical.operator_specs import AnyOperatorSpec, Chain, ChainEdge, JobGraph


class Placement(Protocol):
    """Where subtasks run; ``key`` names a channel, the same in every process."""

    def here(self, subtask: int) -> bool:
        """Whether tasks of a subtask number run in this process."""

    def producer(self, key: str, target: int, wake: Wakeup) -> ProducerChannel:
        """Return the producer's end of a channel to subtask ``target`` in another process."""

    def consumer(self, key: str, source: int, capacity: int, wake: Wakeup) -> ConsumerChannel:
        """Return the consumer's end of a channel from subtask ``source`` in another process."""


class AllHere:
    """One process runs every subtask."""

    def here(self, subtask: int) -> bool:
        return True

    def producer(self, key: str, target: int, wake: Wakeup) -> ProducerChannel:
        raise AssertionError(key)

    def consumer(self, key: str, source: int, capacity: int, wake: Wakeup) -> ConsumerChannel:
        raise AssertionError(key)


@dataclass(frozen=True)
class ChannelEnds:
    """The two ends of a channel; each is set where its task runs in this process."""

    producer: ProducerChannel | None
    consumer: ConsumerChannel | None


Channels = list[list[ChannelEnds]]

NO_ENDS = ChannelEnds(None, None)

ALL_HERE = AllHere()


@dataclass(frozen=True)
class RestorePoint:
    """A checkpoint and where its files are."""

    storage: Storage
    manifest: Manifest


@dataclass(frozen=True)
class Deployer:
    """What all deployments of a job have in common: graph, options, and injected services."""

    graph: JobGraph
    options: JobOptions
    services: Services
    clock: Clock
    build: BuildOperator
    keep_snapshots: bool
    job_id: str
    owner: str

    def tasks(
        self,
        attempt: int,
        restore: RestorePoint | None,
        last_checkpoint_id: int,
        report: Callable[[TaskReport], None],
        wakeup: Callable[[int], Wakeup],
        placement: Placement = ALL_HERE,
    ) -> list[Task]:
        """Return the tasks of a new deployment that run here, in topological order; ``wakeup(slot)`` wakes
        the slot of a subtask number.
        """
        if self.options.keep_freed:
            keep_freed_memory()
        # all channels first: a writer and a gate then meet in the same object
        channels = {edge: self._channels(edge, wakeup, placement) for edge in self.graph.edges}
        # one budget per slot: the tasks of one subtask number share it
        budgets: defaultdict[int, MemoryBudget | None] = defaultdict(self._budget)
        restored_from = (
            None if restore is None else RestoredFrom(restore.manifest.owner, restore.manifest.checkpoint_id)
        )
        made = []
        for chain in self.graph.chains:
            for subtask in filter(placement.here, range(chain.parallelism)):
                # one record writer for each outgoing edge
                output = TaskOutput(
                    [
                        self._writer(edge, channels[edge], subtask)
                        for edge in self.graph.outputs_of(chain.chain_id)
                    ]
                )
                specs = [
                    self._operator(chain, spec, subtask, attempt, report, restored_from, wakeup(subtask))
                    for spec in chain.operators
                ]
                operators = OperatorChain(specs, output, incremental=self.options.incremental_checkpoints)
                made.append(
                    Task(
                        TaskId(chain.chain_id, subtask),
                        operators,
                        self._gate(chain, channels, subtask),
                        output,
                        clock=self.clock,
                        report=report,
                        attempt=attempt,
                        last_checkpoint_id=last_checkpoint_id,
                        keep_snapshots=self.keep_snapshots,
                        restore=None
                        if restore is None
                        else Restorer(restore.storage, restore.manifest, self.options.batch_max_rows).restore,
                        # a task whose operators had all finished in the checkpoint only forwards its end
                        finished=restore is not None
                        and all(restore.manifest.finished(spec.operator_id) for spec in chain.operators),
                        wake=wakeup(subtask),
                        marker_interval_ms=self.options.latency_interval_ms,
                        budget=budgets[subtask],
                        edge_targets={
                            edge.port: self._edge_target(edge)
                            for edge in self.graph.inputs_of(chain.chain_id)
                        },
                    )
                )
        return made

    def _budget(self) -> MemoryBudget | None:
        limit = self.options.state_budget_bytes
        return MemoryBudget(limit, SpillFiles(self.options.spill_dir)) if limit else None

    def _channels(self, edge: ChainEdge, wakeup: Callable[[int], Wakeup], placement: Placement) -> Channels:
        """Return the channels of an edge by source subtask, then target subtask; a forward edge joins
        equal subtasks only.
        """
        sources, targets = self._parallelism(edge.source), self._parallelism(edge.target)
        forward = isinstance(edge.edge, Forward)
        # the planner puts an exchange there; this is a defect of ours
        if forward and sources != targets:
            message = f"a forward edge from {sources} to {targets} subtasks"
            raise PenstockError("INT-9016", message, kind=Kind.INTERNAL, sqlstate="XX000")
        return [
            [
                self._ends(edge, source, target, wakeup, placement)
                if not forward or source == target
                else NO_ENDS
                for target in range(targets)
            ]
            for source in range(sources)
        ]

    def _ends(
        self, edge: ChainEdge, source: int, target: int, wakeup: Callable[[int], Wakeup], placement: Placement
    ) -> ChannelEnds:
        """Return the ends of one channel that are here."""
        has_producer, has_consumer = placement.here(source), placement.here(target)
        capacity = self.options.channel_capacity
        # both tasks run here: one queue is both ends
        if has_producer and has_consumer:
            channel = Channel(capacity, wakeup(target), wakeup(source))
            return ChannelEnds(channel, channel)
        # the same in every process: chain.subtask-chain.subtask:port
        key = f"{edge.source}.{source}-{edge.target}.{target}:{edge.port}"
        return ChannelEnds(
            placement.producer(key, target, wakeup(source)) if has_producer else None,
            placement.consumer(key, source, capacity, wakeup(target)) if has_consumer else None,
        )

    def _writer(self, edge: ChainEdge, channels: Channels, subtask: int) -> RecordWriter:
        return record_writer(
            edge.edge,
            [ends.producer for ends in channels[subtask] if ends.producer is not None],
            subtask=subtask,
            max_parallelism=self.graph.max_parallelism,
            clock=self.clock,
            max_rows=self.options.batch_max_rows,
            timeout_ms=self.options.buffer_timeout_ms,
            edge_target=self._edge_target(edge) if self.graph.overtakable(edge) else None,
        )

    def _edge_target(self, edge: ChainEdge) -> EdgeTarget:
        head = next(chain for chain in self.graph.chains if chain.chain_id == edge.target).operators[0]
        return EdgeTarget(head.operator_id, edge.port, edge.edge, self.graph.max_parallelism)

    def _gate(self, chain: Chain, channels: dict[ChainEdge, Channels], subtask: int) -> InputGate | None:
        inputs = self.graph.inputs_of(chain.chain_id)
        if not inputs:
            return None
        joined, ports, sources, overtakable = [], [], [], []
        for edge in inputs:
            # this subtask's end of the channel from each source subtask; a forward edge has one
            for number, source in enumerate(channels[edge]):
                channel = source[subtask].consumer
                if channel is not None:
                    joined.append(channel)
                    ports.append(edge.port)
                    sources.append(number)
                    overtakable.append(self.graph.overtakable(edge))
        return InputGate(
            joined,
            ports,
            self._bounded_ports(chain, inputs),
            sources=sources,
            overtakable=overtakable if self.options.unaligned else (),
            blocking=self.options.exactly_once,
            by_port=isinstance(chain.operators[0].node, SnapshotJoin),
            max_rows=self.options.batch_max_rows,
        )

    def _bounded_ports(self, chain: Chain, inputs: tuple[ChainEdge, ...]) -> tuple[int, ...]:
        """Return the ports to read to their end first. None when they share a source with the others: they
        would wait for themselves.
        """
        # only a join with a bounded side loads that side first
        head = chain.operators[0]
        if not isinstance(head.node, BinaryJoin) or not head.facts.bounded_ports:
            return ()
        bounded = {
            chain_id
            for edge in inputs
            if edge.port in head.facts.bounded_ports
            for chain_id in self._ancestors(edge.source)
        }
        others = {
            chain_id
            for edge in inputs
            if edge.port not in head.facts.bounded_ports
            for chain_id in self._ancestors(edge.source)
        }
        # A self join reads one source on both sides. To read one port to its end first, the source would have
        # to send the other port's rows too, and nobody would read them.
        return () if bounded & others else head.facts.bounded_ports

    def _ancestors(self, chain_id: int) -> set[int]:
        return {chain_id}.union(*(self._ancestors(edge.source) for edge in self.graph.inputs_of(chain_id)))

    def _operator(
        self,
        chain: Chain,
        spec: AnyOperatorSpec,
        subtask: int,
        attempt: int,
        report: Callable[[TaskReport], None],
        restored: RestoredFrom | None,
        wake: Wakeup,
    ) -> ChainedOperator:
        context = Context(
            operator_id=spec.operator_id,
            name=spec.name,
            subtask=subtask,
            parallelism=chain.parallelism,
            key_groups=key_group_range(self.graph.max_parallelism, chain.parallelism, subtask),
            clock=self.clock,
            metrics=OperatorMetrics(late_log=late_log(self.services, self.job_id, spec.name)),
            services=self.services,
            job_id=self.job_id,
            attempt=attempt,
            report_event=lambda event: report(
                OperatorEventReported(
                    attempt, TaskId(chain.chain_id, subtask), spec.operator_id, spec.name, event
                )
            ),
            owner=self.owner,
            restored=restored,
            keeps_snapshots=self.keep_snapshots,
            arrivals=RowArrivals(wake),
        )
        return ChainedOperator(self.build(spec, self.options), context)

    def _parallelism(self, chain_id: int) -> int:
        return next(chain.parallelism for chain in self.graph.chains if chain.chain_id == chain_id)


@dataclass(frozen=True)
class Deployment:
    """One deployment of a job, number ``attempt`` of the coordinator with this ``epoch``.

    ``restore``: the checkpoint its tasks start from. ``last_checkpoint_id``: the highest ever used.
    ``placement``: which tasks run in this process.
    """

    deployer: Deployer
    attempt: int
    restore: RestorePoint | None
    last_checkpoint_id: int
    epoch: int = 0
    placement: Placement = ALL_HERE

    def tasks(self, report: Callable[[TaskReport], None], wakeup: Callable[[int], Wakeup]) -> list[Task]:
        """Return its tasks here in topological order; ``wakeup(slot)`` wakes the slot of a subtask number."""
        return self.deployer.tasks(
            self.attempt, self.restore, self.last_checkpoint_id, report, wakeup, self.placement
        )
