"""The messages between the coordinator and a worker: a closed set of frozen dataclasses. Messages of a
deployment carry its id.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.locations import Location
from penstock.engine.api.stream_elements import Batch
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.connectors.in_process.bad_records import RejectedRecord
from penstock.engine.deploy.protocol.error_codec import SentError
from penstock.engine.deploy.worker.registration import WorkerFacts
from penstock.engine.metrics.task_metrics import TaskFigures
from penstock.engine.network.admission import Refusals
from penstock.engine.task.messages import TaskId, TaskMessage
from penstock.planner.physical.operator_specs import JobGraph

# of this set of messages: a worker of another version is refused in its hello
VERSION = 3


@dataclass(frozen=True)
class DeploymentId:
    """A deployment of a job. ``attempt`` counts the deployments of one coordinator, ``epoch`` the
    coordinators of the job's directory.
    """

    job_id: str
    epoch: int
    attempt: int


# From a worker, of itself.


@dataclass(frozen=True)
class Hello:
    """The first message of a worker: its number and its token. ``facts``: set by a worker that the
    coordinator did not start itself.
    """

    worker: int
    version: int
    token: str
    # None for a child process, which runs this very Python
    facts: WorkerFacts | None = None


@dataclass(frozen=True)
class Alive:
    """The heartbeat of a worker. ``stale``: messages it has refused because their deployment was over;
    ``refusals``: strangers it has refused.
    """

    stale: int
    refusals: Refusals = Refusals()


# To a worker.


@dataclass(frozen=True)
class ToTasks:
    """A message for one deployment; a worker that runs a newer deployment refuses it."""

    deployment: DeploymentId
    # Prepare, DeployTasks, PostToTask, ReleaseTasks, ResultCredit or BoundedRows
    body: Any


@dataclass(frozen=True)
class Prepare:
    """Prepare a deployment. A worker that is ``linked`` listens for the other workers, which know ``token``
    and its ``name``.

    ``modules``: the modules that Python functions may be imported from; ``path``: the directories on Python's
    path. ``probe``: a file of the job's directory and its text, if the worker must see that directory.
    """

    name: str
    token: str
    linked: bool
    modules: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    probe: tuple[Path, str] | None = None


@dataclass(frozen=True)
class Peer:
    """Another worker of a deployment: its address and the slots it runs."""

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
    """Create and start the tasks of ``slots``. ``manifest``: the checkpoint in ``state`` to restore;
    ``owner``: the owner id under which sinks stage their output.
    """

    graph: JobGraph
    options: JobOptions
    slots: tuple[int, ...]
    # all other workers: each pair of workers has one connection
    peers: tuple[Peer, ...]
    last_checkpoint_id: int
    keep_snapshots: bool
    state: Location | None
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
    """The client has read ``batches`` more batches of a result."""

    operator_id: str
    batches: int


@dataclass(frozen=True)
class BoundedRows:
    """Output of a bounded query: rows, its end, or its error."""

    query: int
    rows: Any = None
    ended: bool = False
    error: SentError | None = None


# From a deployment on a worker.


@dataclass(frozen=True)
class FromTasks:
    """A message from a deployment; the coordinator drops it when that deployment is over."""

    deployment: DeploymentId
    body: Any


@dataclass(frozen=True)
class Prepared:
    """The worker is prepared; other workers connect to ``address``."""

    address: tuple[Any, ...]


@dataclass(frozen=True)
class Deployed:
    """The tasks are created and started."""


@dataclass(frozen=True)
class TaskFailure:
    """A task failed. ``peer``: the worker whose connection ended, if that is the cause."""

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
    """The current figures of the tasks."""

    tasks: tuple[TaskFigures, ...]


@dataclass(frozen=True)
class Released:
    """All tasks are closed."""


@dataclass(frozen=True)
class ResultRows:
    """Rows for the client."""

    operator_id: str
    # one frame's worth: larger batches are split by the sender
    batch: Batch


@dataclass(frozen=True)
class ResultEnded:
    """A collect subtask has emitted all its rows."""

    operator_id: str
    subtask: int
    parallelism: int


@dataclass(frozen=True)
class Printed:
    """Lines of a print sink."""

    text: str


@dataclass(frozen=True)
class LateRowsSeen:
    """Late rows; ``watermarks`` and ``ends`` are int64 columns."""

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
    """The initial rows of a subtask of a materialized view's sink."""

    view: str
    subtask: int
    parallelism: int
    rows: tuple[Batch, ...]


@dataclass(frozen=True)
class ViewStaged:
    """The changes of a view before the barrier of a checkpoint."""

    view: str
    checkpoint_id: int
    changes: tuple[Batch, ...]


@dataclass(frozen=True)
class ViewCompleted:
    """A checkpoint is durable: the view's staged changes may be published."""

    view: str
    checkpoint_id: int


@dataclass(frozen=True)
class BoundedWanted:
    """Run the bounded subplan of an operator, and stage its rows in ``staging`` if set. ``query`` numbers the
    request within the deployment.

    ``splits``: the splits of a history that the worker requests.
    """

    query: int
    operator_id: str
    staging: Path | None
    splits: tuple[str, ...] = ()


@dataclass(frozen=True)
class BoundedDemand:
    """The task has read a batch of a bounded query, or (``closed``) needs no more."""

    query: int
    closed: bool = False
