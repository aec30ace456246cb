"""Makes ``format("penstock")`` known to a Spark session, and its code to the session's workers."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from client.spark_source.source import PenstockSource

_ROOT = Path(__file__).resolve().parent.parent.parent
_FLOORS = ("catalog", "planner", "engine", "client")


def register_spark(spark: Any, *, ship: bool | None = None) -> None:
    """Let a Spark session read ``format("penstock")``.

    ``ship``: send penstock's modules to the session's workers, where it is not installed; by default when the session is not of one machine.
    """
    remote = not hasattr(spark, "_jsc")  # a session of Spark Connect has no context of its own
    if ship is None:
        ship = remote or not spark.sparkContext.master.startswith("local[")
    if ship:
        archive = modules_archive(Path(tempfile.mkdtemp(prefix="penstock-modules-")))
        if remote:
            spark.addArtifacts(str(archive), pyfile=True)
        else:
            spark.sparkContext.addPyFile(str(archive))
    spark.dataSource.register(PenstockSource)


def modules_archive(directory: Path) -> Path:
    """Write the modules a worker may import into an archive in a directory; return where it is."""
    archive = directory / "penstock_modules.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        for floor in _FLOORS:
            for path in sorted((_ROOT / floor).rglob("*.py")):
                writer.write(path, path.relative_to(_ROOT).as_posix())
    return archive
