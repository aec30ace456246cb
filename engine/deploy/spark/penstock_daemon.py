"""The process Spark's Python workers are forked from, with what ours import already there: one that is
started again works half a second sooner.

Spark runs it by its name (``spark.python.daemon.module``) in an executor's directory, where it is shipped
alone. What it imports is only a start: workers look whether that is the code that was shipped, as those do
that were forked from Spark's own daemon.

What it buys: ``make_ready()`` of ``deploy.worker.preloaded`` takes 0.54 s of processor time after ``import
pyspark.worker`` (five fresh processes, byte code warm); without this file each worker spends it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback
from pathlib import Path

ROOT = "PENSTOCK_ROOT"
"""The variable that says where the coordinator has our packages."""


def code_roots() -> list[Path]:
    """Return where our packages may be on this machine: where the coordinator has them, and where earlier
    workers have unpacked what was shipped.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "code"
    said = os.environ.get(ROOT)
    places = [
        *([Path(said)] if said else []),
        *(cache / shipped.stem for shipped in sorted(Path.cwd().glob("penstock-*.zip"))),
    ]
    return [place for place in places if (place / "penstock" / "__init__.py").is_file()]


def preload() -> None:
    """Import what workers need; what is missing here is told by the worker that misses it."""
    path = list(sys.path)
    sys.path[1:1] = [str(root) for root in code_roots()[:1]]
    try:
        with contextlib.redirect_stdout(sys.stderr):  # Spark reads stdout
            import pyspark.worker  # noqa: F401

            from penstock.engine.deploy.worker.preloaded import make_ready

            make_ready()
    except Exception:  # noqa: BLE001 - whatever it is, Spark's workers must start
        traceback.print_exc()
    finally:
        sys.path[:] = path


def main() -> None:
    """Be Spark's daemon. A process with threads must not be forked: where an import has started one it
    becomes Spark's own.
    """
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    preload()
    threads = Path("/proc/self/task")
    if threads.is_dir() and len(list(threads.iterdir())) > 1:
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    gc.freeze()  # workers collect after each task, and would copy what they only share
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
