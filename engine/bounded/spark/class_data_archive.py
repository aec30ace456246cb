"""Archives of loaded classes (class data sharing) that shorten the next start of Spark. Java writes one when
the first Spark ends.

Measured on a count of 1,000 rows by the command line, Java 17. A busy machine of two cores takes 15.5 s cold
and 9.6 s archived (8.2 and 4.9 cpu-seconds). A quiet one takes 11.3 and 6.0 s. pyspark has nothing like it.
``python -m bench startup`` prints the figures.
"""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import SystemClock
from penstock.engine.bounded.spark.java_runtime import Java
from penstock.engine.storage.local import make_private

SWITCH = "PENSTOCK_SPARK_ARCHIVE"
# from Java 25 on the archive is an ahead-of-time cache, with other options
_AHEAD_OF_TIME_FROM = 25
# a month without a start from it
_UNUSED_S = 30 * 86_400
_WRITTEN_WITHIN_S = 600
"""Java takes seconds to write an archive, and may do so after the process that started it has ended."""


def cache_directory() -> Path:
    """Return penstock's cache directory, which may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "penstock"


def archive_file(java: Java, spark_jars: Path) -> Path:
    """Return the path of the archive for this Java and this Spark; it may not exist yet."""
    return cache_directory() / _name(java, spark_jars)


def executors_options(java: Java, spark_jars: Path) -> list[str]:
    """Return the options with which executors use this machine's archive. Java ignores a missing archive, or
    one of another Java.
    """
    # executors use archives of classes only, not the ahead-of-time cache of later Javas
    if os.environ.get(SWITCH) == "off" or java.version >= _AHEAD_OF_TIME_FROM:
        return []
    archive = archive_file(java, spark_jars)
    # the options of executors are one text that Spark splits at blanks
    return [f"-XX:SharedArchiveFile={archive}"] if archive.is_file() and " " not in str(archive) else []


def class_path(spark_jars: Path) -> list[str]:
    """Return the class path of the jars, in the form of Spark's own launcher, which starts executors."""
    return [*(str(path) for path in sorted(spark_jars.glob("slf4j-api-*.jar"))), str(spark_jars / "*")]


def archive_options(java: Java, spark_jars: Path) -> tuple[list[str], bool]:
    """Return the options that use the archive for this Java and this Spark, or that write it at exit, and
    whether it will be written.

    An archive is never used if Java was killed while writing it; it is written again.
    ``PENSTOCK_SPARK_ARCHIVE`` set to ``off`` disables archives, as does a cache directory that cannot be
    written.
    """
    if os.environ.get(SWITCH) == "off":
        return [], False
    directory = cache_directory()
    try:
        make_private(directory)
        archive = archive_file(java, spark_jars)
        _adopt(archive)
        _drop_unused(archive)
    except (OSError, PenstockError):
        return [], False
    ahead = java.version >= _AHEAD_OF_TIME_FROM
    if archive.is_file():
        return [f"-XX:AOTCache={archive}" if ahead else f"-XX:SharedArchiveFile={archive}"], False
    # Java writes to a name of this process; a later start renames it when it is complete
    fresh = archive.with_name(f"{archive.name}.{os.getpid()}")
    return [f"-XX:AOTCacheOutput={fresh}" if ahead else f"-XX:ArchiveClassesAtExit={fresh}"], True


def _drop_unused(archive: Path) -> None:
    """Mark an archive as used, and remove those of other Javas and Sparks unused for a month: each takes 160
    MB or more.

    Unfinished archives of that age are removed as well.
    """
    now = SystemClock().wall_ms() / 1000
    # the modification time is the time of last use
    if archive.exists():
        os.utime(archive)
    for other in archive.parent.glob("*.jsa*"):
        if other != archive and other.stat().st_mtime < now - _UNUSED_S:
            other.unlink(missing_ok=True)


def is_spare(archive: Path) -> bool:
    """Return whether another process has written an archive meanwhile. A second one would be useless until
    the next start.
    """
    # ``.jsa.1234`` with content: a process that ends just now writes its own
    return archive.exists() or any(
        other.suffix[1:].isdigit() and other.stat().st_size
        for other in archive.parent.glob(f"{archive.name}.*")
    )


def _name(java: Java, spark_jars: Path) -> str:
    # Spark's version, Java's home and build, class path: one archive for each combination
    core = next(iter(sorted(spark_jars.glob("spark-core_*.jar"))), None)
    spark = re.sub(r"[^0-9A-Za-z.]+", "-", core.stem if core else "spark")
    home = re.sub(r"[^0-9A-Za-z.]+", "-", str(java.program.parent.parent)).strip("-")[-60:]
    # Java takes an archive only for the very class path it was written with
    path_hash = zlib.crc32(os.pathsep.join(class_path(spark_jars)).encode())
    return f"{spark}-{home}-{java.build}-{path_hash:08x}.jsa"


def _adopt(archive: Path) -> None:
    """Adopt an archive that an earlier process has finished, and remove redundant ones. An old one without a
    head is removed too: Java was killed while it wrote it.
    """
    given_up = SystemClock().wall_ms() / 1000 - _WRITTEN_WITHIN_S
    if archive.exists() and not _has_head(archive):
        archive.unlink(missing_ok=True)
    for fresh in archive.parent.glob(f"{archive.name}.*"):
        if not fresh.suffix[1:].isdigit():
            continue  # what Java 25 notes for the process that writes the archive from it, and removes
        if _has_head(fresh) and not archive.exists():
            fresh.rename(archive)
        elif _has_head(fresh) or fresh.stat().st_mtime < given_up:
            fresh.unlink(missing_ok=True)


def _has_head(archive: Path) -> bool:
    """Whether Java has finished an archive: its magic number at the start is written last."""
    with archive.open("rb") as file:
        return any(file.read(4))
