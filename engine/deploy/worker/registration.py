"""The facts a worker registers with, and whether its libraries match those of the coordinator."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from penstock.catalog.errors import Kind, PenstockError

# their versions decide the layout of what is sent and the code of kernels
_LIBRARIES = ("pyarrow", "numpy", "numba")


@dataclass(frozen=True)
class WorkerFacts:
    """A process: its host, its process id, its Python, and the versions of the libraries that tasks need, by
    name.
    """

    host: str
    pid: int
    python: str
    libraries: tuple[tuple[str, str], ...]


def own_facts() -> WorkerFacts:
    """Return the facts of this process."""
    return WorkerFacts(
        socket.gethostname(),
        os.getpid(),
        platform.python_version(),
        tuple((name, _version(name)) for name in _LIBRARIES),
    )


def _version(name: str) -> str:
    try:
        # from the package's metadata: nothing is imported
        return version(name)
    except PackageNotFoundError:
        return "none"


def misfit(worker: WorkerFacts, mine: WorkerFacts) -> PenstockError | None:
    """Return RUN-2921 for a worker with another minor version of Python or other libraries than this process;
    None when they match.
    """
    # 3.12.1 and 3.12.7 fit together, so only the minor version is compared
    theirs, ours = (
        {"Python": _minor(worker.python), **dict(worker.libraries)},
        {"Python": _minor(mine.python), **dict(mine.libraries)},
    )
    differing = [
        f"{name} {theirs.get(name, 'none')} instead of {ours[name]}"
        for name in ours
        if theirs.get(name) != ours[name]
    ]
    if not differing:
        return None
    return PenstockError(
        "RUN-2921",
        f"the worker on {worker.host} has {', '.join(differing)}",
        hint="give workers the environment of this process: 'spark.archives' with a packed one, or "
        "PYSPARK_PYTHON",
        kind=Kind.USER,
        sqlstate="55000",
    )


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])
