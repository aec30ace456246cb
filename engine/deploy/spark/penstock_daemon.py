"""The process that Spark forks its Python workers from, with the imports of our workers already loaded. A
restarted worker is ready half a second sooner.

Spark runs it by name (``spark.python.daemon.module``) in an executor's directory, where this file is shipped
alone. Its imports are only a head start. Every worker checks that they match the shipped code, as do workers
forked from Spark's own daemon.

``make_ready()`` of ``deploy.worker.preloaded`` takes 0.54 s of processor time after ``import pyspark.worker``
(five fresh processes, byte code warm). Without this file each worker spends it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback
from pathlib import Path

ROOT = "PENSTOCK_ROOT"
"""The environment variable that holds the coordinator's path to our packages."""


def code_roots() -> list[Path]:
    """Return the directories of this machine that may contain our packages: the coordinator's own, then those
    that earlier workers unpacked.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "code"
    coordinator_root = os.environ.get(ROOT)
    candidates = [
        *([Path(coordinator_root)] if coordinator_root else []),
        *(cache / shipped.stem for shipped in sorted(Path.cwd().glob("penstock-*.zip"))),
    ]
    return [candidate for candidate in candidates if (candidate / "penstock" / "__init__.py").is_file()]


def preload() -> None:
    """Import the modules that workers need. A missing module is not an error here: the worker that needs it
    reports it.
    """
    path = list(sys.path)
    # only for these imports: a forked worker sets its own path
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
    """Run Spark's daemon. A process with threads must not be forked: if an import has started one, Spark's
    own daemon replaces this process.
    """
    # before Arrow is imported: its allocator would start a thread
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    preload()
    threads = Path("/proc/self/task")
    # /proc/self/task has a directory for each thread, those of C libraries too
    if threads.is_dir() and len(list(threads.iterdir())) > 1:
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    gc.freeze()  # workers collect after each task, and would copy what they only share
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
