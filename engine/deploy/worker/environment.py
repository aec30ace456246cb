"""The environment of a worker's tasks: threads, connections, files and the operator factory. A simulation
substitutes its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from penstock.engine.api.clock import Clock
from penstock.engine.api.locations import Location
from penstock.engine.api.operator import BuildOperator
from penstock.engine.exchange.channel import ConsumerChannel, ProducerChannel, Wakeup
from penstock.engine.network.admission import Refusals, refusals_of
from penstock.engine.network.data_plane import LOOPBACK, DataPlane
from penstock.engine.network.handshake import Identity
from penstock.engine.network.links import LinkLost
from penstock.engine.network.listener_options import Listening
from penstock.engine.operators.factory import build_operator
from penstock.engine.storage.locations import storage_at
from penstock.engine.storage.storage import Storage
from penstock.engine.task.messages import TaskReport
from penstock.engine.task.task import Task
from penstock.engine.task_manager.task_deployment import Deployment
from penstock.engine.task_manager.task_manager import IoThread, ThreadedWorkers


class Io(Protocol):
    """Does blocking work elsewhere, in the order of submission."""

    def submit(self, work: Callable[[], None]) -> None:
        """Queue a piece of work."""


class Slots(Protocol):
    """Runs the tasks of one deployment on this worker."""

    def deploy(self, deployment: Deployment) -> Sequence[Task]:
        """Create the tasks."""

    def start(self) -> None:
        """Run them."""

    def release(self) -> None:
        """Close all tasks."""


class Plane(Protocol):
    """The channels to the other workers of a deployment."""

    @property
    def address(self) -> tuple[Any, ...]:
        """The address that the other workers connect to."""

    def connect(self, peer: str, address: tuple[str, int]) -> None:
        """Connect to a peer, or expect its connection."""

    def sender(self, key: str, peer: str, wake_producer: Wakeup) -> ProducerChannel:
        """Return the producer's end of a channel."""

    def receiver(self, key: str, capacity: int, wake_consumer: Wakeup) -> ConsumerChannel:
        """Return the consumer's end of a channel."""

    def close(self) -> None:
        """Send a goodbye to the peers and end."""


class WorkerMeans(Protocol):
    """Creates the environment of each deployment on a worker."""

    build: BuildOperator

    def io(self) -> Io:
        """Return the queue that writes its snapshots."""

    def slots(self, report: Callable[[TaskReport], None], io: Any) -> Slots:
        """Return the slots that run its tasks; they call ``report`` with each report of a task."""

    def plane(self, identity: Identity, link_lost: LinkLost) -> Plane:
        """Return its channels to other workers."""

    def storage(self, place: Location) -> Storage:
        """Return the storage of the job's checkpoints."""

    def services(self) -> tuple[Any, ...]:
        """Return the services of operators that do not belong to the worker itself."""

    def refusals(self) -> Refusals:
        """Return the strangers its channels have refused so far."""


class ProcessMeans:
    """The environment in a process: a thread for each slot and one for I/O, sockets, a directory."""

    def __init__(self, clock: Clock, listening: Listening = LOOPBACK) -> None:
        self._clock = clock
        self._listening = listening
        # counted over all deployments of the process
        self._refused: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self.build: BuildOperator = build_operator

    def io(self) -> IoThread:
        # one thread: snapshots are written in the order of submission
        return IoThread("worker-io")

    def slots(self, report: Callable[[TaskReport], None], io: IoThread) -> ThreadedWorkers:
        return ThreadedWorkers("worker", self._clock, report, io)

    def plane(self, identity: Identity, link_lost: LinkLost) -> DataPlane:
        # a new plane for each deployment: no link of an earlier one remains
        return DataPlane(
            identity,
            self._clock,
            link_lost,
            listening=self._listening,
            refused=self._refused,
            faults=self._faults,
        )

    def storage(self, place: Location) -> Storage:
        return storage_at(place)

    def services(self) -> tuple[Any, ...]:
        return ()

    def refusals(self) -> Refusals:
        return refusals_of(self._refused, self._faults)
