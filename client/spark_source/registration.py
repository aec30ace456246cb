"""Registers ``format("penstock")`` with a Spark session, and ships its code to the session's workers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from penstock.client.spark_source.source import PenstockSource
from penstock.engine.bounded.spark.errors import other_python, without_module
from penstock.engine.deploy.spark.code_archive import write_archive

# without the optimizer and the shell: workers only read files
_PACKAGES = ("catalog", "planner", "engine", "client")


def register_spark(spark: Any, *, ship: bool | None = None) -> None:
    """Let a Spark session read ``format("penstock")``.

    ``ship``: send penstock's modules to the session's workers, for workers without penstock. By default they
    are sent when the session spans machines, or its workers run another Python. BND-5026 when that Python is
    of another version or has no pyarrow.
    """
    remote = not hasattr(spark, "_jsc")  # a session of Spark Connect has no context of its own
    if ship is None:
        ship = (
            remote
            # a cluster's workers need not have penstock installed
            or not spark.sparkContext.master.startswith("local[")
            or _is_another_python(spark.sparkContext.pythonExec)
        )
    if ship:
        archive = write_archive(Path(tempfile.mkdtemp(prefix="penstock-modules-")), _PACKAGES)
        # Spark Connect: the archive goes through the server
        if remote:
            spark.addArtifacts(str(archive), pyfile=True)
        else:
            spark.sparkContext.addPyFile(str(archive))
    spark.dataSource.register(PenstockSource)


def _is_another_python(program: str) -> bool:
    """Return whether workers of this machine run another Python than this process. It is started to find its
    version and pyarrow.
    """
    # the same one; or none of this machine, and then nothing can be asked of it
    if program == sys.executable or shutil.which(program) is None:
        return False
    question = (
        "import sys; print('%d.%d' % sys.version_info[:2])\ntry:\n import pyarrow\nexcept "
        "ImportError:\n print('no pyarrow')"
    )
    # in a process of that Python: only it knows its version and its modules
    said = subprocess.run(
        [program, "-c", question], capture_output=True, text=True, check=False
    ).stdout.split("\n")
    if said[0] and said[0] != f"{sys.version_info.major}.{sys.version_info.minor}":
        raise other_python(said[0], f"the session's workers run {program}")
    if "no pyarrow" in said:
        raise without_module("pyarrow", f"the session's workers run {program}")
    return True
