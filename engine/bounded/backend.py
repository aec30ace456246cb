"""The interface of bounded backends, and the result of a query they run."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError, out_of_memory
from penstock.catalog.schema import Schema
from penstock.engine.api.threads import EngineThread, close_at_exit
from penstock.planner.logical.plan import LogicalPlan

# a reader that stops polling keeps at most this many batches of the backend in memory
_BATCHES_AHEAD = 4

Emit = Callable[[pa.RecordBatch], bool]


class BoundedBackend(Protocol):
    """Runs a bounded plan as a query on another engine and returns its rows."""

    name: str

    def run(
        self,
        plan: LogicalPlan,
        *,
        staging_dir: Path | None = None,
        time_zone: str = "UTC",
        memory_bytes: int = 0,
    ) -> BoundedResult:
        """Start a query and return at once. Its rows come in one fixed order and with exactly the Arrow types
        of its schema.

        With ``staging_dir`` all rows are first written there (see ``penstock.engine.storage.staged_rows``).
        ``memory_bytes``: the most that a backend in this process may take, 0 for what it likes.
        They are emitted only when they are complete and durable. Raises BND-51xx for a plan the backend
        cannot express; the result raises all later errors.
        """

    def explain(self, plan: LogicalPlan) -> str:
        """Return the query text the backend would run."""

    def close(self) -> None:
        """Stop running queries and release whatever was started."""


class BoundedResult:
    """The rows of a bounded query: iterate (blocks), or poll (does not). A few batches are produced ahead; a
    slow reader slows the backend.
    """

    def __init__(
        self,
        schema: Schema,
        produce: Callable[[Emit], None],
        cancel: Callable[[], None],
        progress: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``produce`` runs in its own thread, passes batches to its argument and returns when that is False.
        ``cancel`` ends it early.

        ``progress`` describes the progress in a few words, from any thread, or is None.
        """
        self.schema = schema
        self.progress = progress
        self._cancel = cancel
        self._changed = threading.Condition()
        self._batches: deque[pa.RecordBatch] = deque()
        self._done = False
        self._closed = False
        self._error: PenstockError | None = None
        self._thread = EngineThread(target=self._run, args=(produce,), name="penstock-bounded")
        # a query that still runs at exit would keep the process alive: it is cancelled then
        _RUNNING.add(self)
        close_at_exit(_cancel_running, serves_jobs=True)
        self._thread.start()

    def _run(self, produce: Callable[[Emit], None]) -> None:
        try:
            produce(self._emit)
        except PenstockError as error:
            self._finish(error)
        except MemoryError as error:
            self._finish(out_of_memory(error, "run the bounded query"))
        except BaseException as error:  # noqa: BLE001  raised in the thread that reads, with its cause
            wrapped = PenstockError(
                "BND-5009",
                f"the bounded backend failed: {type(error).__name__}",
                detail=str(error)[:500],
                kind=Kind.INTERNAL,
            )
            wrapped.__cause__ = error
            self._finish(wrapped)
        else:
            self._finish(None)

    def _finish(self, error: PenstockError | None) -> None:
        with self._changed:
            # the error that it was failed with is not replaced by that of its interrupted query
            if not self._done:
                self._error, self._done = error, True
            self._changed.notify_all()

    @property
    def _over(self) -> bool:
        return self._closed or self._done

    def _emit(self, batch: pa.RecordBatch) -> bool:
        with self._changed:
            # backpressure: the producing thread waits for the reader, or for cancel
            self._changed.wait_for(lambda: self._over or len(self._batches) < _BATCHES_AHEAD)
            if not self._over:
                self._batches.append(batch)
                self._changed.notify_all()
            return not self._over

    def poll(self) -> pa.RecordBatch | None:
        """Return the next batch, or ``None`` when there is none now; raise the query's error."""
        with self._changed:
            return self._take()

    def _take(self) -> pa.RecordBatch | None:
        # one slot is free: wake the producer
        if self._batches:
            self._changed.notify_all()
            return self._batches.popleft()
        # rows come before the error: it is raised only when all batches have been read
        if self._done and self._error is not None and not self._closed:
            raise self._error
        return None

    @property
    def ended(self) -> bool:
        """Whether all rows have been read."""
        with self._changed:
            return self._closed or (self._done and not self._batches and self._error is None)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until there is a batch, an error or the end; return whether there is."""
        with self._changed:
            return self._changed.wait_for(
                lambda: bool(self._batches) or self._done or self._closed, timeout_s
            )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        self.wait()
        with self._changed:
            batch = self._take()
        if batch is None:
            raise StopIteration
        return batch

    def memory_bytes(self) -> int:
        """Return the bytes of the rows that wait to be read."""
        with self._changed:
            return sum(batch.nbytes for batch in self._batches)

    def fail(self, error: PenstockError) -> None:
        """Stop the query and drop its rows; the next read raises ``error``."""
        with self._changed:
            running = not self._done
            self._error, self._done = error, True
            self._batches.clear()
            self._changed.notify_all()
        if running:
            self._cancel()

    def cancel(self) -> None:
        """Stop the query; unread rows are lost."""
        with self._changed:
            # closed first, so that an emit that waits returns False and the producer ends
            running, self._closed = not self._done, True
            self._batches.clear()
            self._changed.notify_all()
        if running:
            self._cancel()

    def close(self) -> None:
        """Cancel a running query and wait a moment for it to end."""
        self.cancel()
        # the producer may close its own result, and a thread cannot join itself
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5)


# weak: a result that nobody reads any more needs no cancel at exit
_RUNNING: WeakSet[BoundedResult] = WeakSet()


def _cancel_running() -> None:
    """Cancel the queries that still run at exit."""
    for result in list(_RUNNING):
        result.cancel()
