"""What travels between the coordinator and a worker: a closed set of frozen messages. What belongs to a
deployment says to which.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.connectors.in_process.bad_records import RejectedRecord
from penstock.engine.deploy.protocol.error_codec import SentError
from penstock.engine.deploy.worker.registration import WorkerFacts
from penstock.engine.metrics.task_metrics import TaskFigures
from penstock.engine.network.admission import Refusals
from penstock.engine.task.messages import TaskId, TaskMessage
from penstock.planner.physical.operator_specs import JobGraph

VERSION = 3


@dataclass(frozen=True)
class DeploymentId:
    """A deployment of a job: ``attempt`` counts those of one coordinator, ``epoch`` the coordinators of
    the job's directory.
    """

    job_id: str
    epoch: int
    attempt: int


# From a worker, of itself.


@dataclass(frozen=True)
class Hello:
    """The first message: who connects, and that it may; ``facts``: of a worker that was started elsewhere."""

    worker: int
    version: int
    token: str
    facts: WorkerFacts | None = None


@dataclass(frozen=True)
class Alive:
    """Nothing to say, but alive; so far ``stale`` messages were refused because their deployment was over,
    and so many strangers.
    """

    stale: int
    refusals: Refusals = Refusals()


# To a worker.


@dataclass(frozen=True)
class ToTasks:
    """Something for a deployment; a worker that has another by now refuses it."""

    deployment: DeploymentId
    body: Any


@dataclass(frozen=True)
class Prepare:
    """Get ready for a deployment: listen for the other workers if it is ``linked``; they know ``token``, and
    this one by ``name``.

    ``modules``: where the Python functions of what follows may be imported from; ``path``: where Python finds
    them. ``probe``: a file of the job's directory and its text, if the worker must see that directory.
    """

    name: str
    token: str
    linked: bool
    modules: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    probe: tuple[Path, str] | None = None


@dataclass(frozen=True)
class Peer:
    """Another worker of a deployment: where it listens, and the slots it runs."""

    name: str
    address: tuple[Any, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True)
class TableFile:
    """A registered table as an Arrow IPC file."""

    name: str
    path: Path


@dataclass(frozen=True)
class DeployTasks:
    """Make and start the tasks of ``slots``. ``manifest``: the checkpoint in ``state`` to go on from;
    ``owner``: of what sinks stage.
    """

    graph: JobGraph
    options: JobOptions
    slots: tuple[int, ...]
    peers: tuple[Peer, ...]
    last_checkpoint_id: int
    keep_snapshots: bool
    state: Path | None
    manifest: Manifest | None
    scratch: Path
    tables: tuple[TableFile, ...]
    owner: str


@dataclass(frozen=True)
class PostToTask:
    """A message for one task."""

    task: TaskId
    message: TaskMessage


@dataclass(frozen=True)
class ReleaseTasks:
    """Close the tasks."""


@dataclass(frozen=True)
class ResultCredit:
    """The client has taken so many batches of a result."""

    operator_id: str
    batches: int


@dataclass(frozen=True)
class BoundedRows:
    """What a bounded query has given: rows, its end, or its error."""

    query: int
    rows: Any = None
    ended: bool = False
    error: SentError | None = None


# From a deployment on a worker.


@dataclass(frozen=True)
class FromTasks:
    """Something from a deployment; the coordinator drops it when that is over."""

    deployment: DeploymentId
    body: Any


@dataclass(frozen=True)
class Prepared:
    """Ready; other workers find this one here."""

    address: tuple[Any, ...]


@dataclass(frozen=True)
class Deployed:
    """The tasks are made and started."""


@dataclass(frozen=True)
class TaskFailure:
    """A task cannot go on; ``peer``: because the connection with that worker ended."""

    task: TaskId
    error: SentError
    peer: str | None = None


@dataclass(frozen=True)
class WriteFailure:
    """A task's part of a checkpoint could not be written (``checkpoint_id`` None: its final snapshot)."""

    checkpoint_id: int | None
    error: SentError


@dataclass(frozen=True)
class MetricsReport:
    """What the tasks have counted by now."""

    tasks: tuple[TaskFigures, ...]


@dataclass(frozen=True)
class Released:
    """All tasks are closed."""


@dataclass(frozen=True)
class ResultRows:
    """Rows for the client."""

    operator_id: str
    batch: Batch


@dataclass(frozen=True)
class ResultEnded:
    """A collect subtask has given all its rows."""

    operator_id: str
    subtask: int
    parallelism: int


@dataclass(frozen=True)
class Printed:
    """Lines of a print sink."""

    text: str


@dataclass(frozen=True)
class LateRowsSeen:
    """Rows that came too late; ``watermarks`` and ``ends`` are int64 columns."""

    operator: str
    rows: Any
    watermarks: Any
    ends: Any


@dataclass(frozen=True)
class BadRecordsSeen:
    """Records that could not be read."""

    table: str
    records: tuple[RejectedRecord, ...]


@dataclass(frozen=True)
class ViewBegun:
    """What a subtask of a materialized view's sink begins with."""

    view: str
    subtask: int
    parallelism: int
    rows: tuple[Batch, ...]


@dataclass(frozen=True)
class ViewStaged:
    """What changed before the barrier of a checkpoint."""

    view: str
    checkpoint_id: int
    changes: tuple[Batch, ...]


@dataclass(frozen=True)
class ViewCompleted:
    """A checkpoint is durable."""

    view: str
    checkpoint_id: int


@dataclass(frozen=True)
class BoundedWanted:
    """Run the bounded subplan of an operator, into ``staging`` if that is given; ``query`` numbers the
    request within the deployment.

    ``splits``: of a history, those the worker wants.
    """

    query: int
    operator_id: str
    staging: Path | None
    splits: tuple[str, ...] = ()


@dataclass(frozen=True)
class BoundedDemand:
    """A batch of a bounded query has been taken, or (``closed``) no more are wanted."""

    query: int
    closed: bool = False
