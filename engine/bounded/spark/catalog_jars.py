"""Which catalogs Spark has the jars for, by the names of the jars: Hive, databases by their drivers,
Iceberg, Delta.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.catalog.frozen_dataclass import dataclass

_DRIVERS = re.compile(
    r"(postgresql|mysql-connector(?:-j|-java)?|mariadb-java-client|derby|ojdbc\d*|mssql-jdbc|sqlite-jdbc|h2|db2jcc\d*|snowflake-jdbc)-?\d"
)
_WANTED = (
    ("hive", re.compile(r"spark-hive_"), "spark-hive"),
    ("jdbc", _DRIVERS, "a JDBC driver"),
    ("iceberg", re.compile(r"iceberg-spark-runtime-"), "iceberg-spark-runtime"),
    ("delta", re.compile(r"delta-(spark|core)_"), "delta-spark and delta-storage"),
)
_BUILT_FOR = re.compile(r"iceberg-spark-runtime-(\d+\.\d+)_")


@dataclass(frozen=True)
class CatalogJars:
    """What there is for a kind of catalog. ``found``: names of jars; ``missing``: what to look for;
    ``built_for``: another Spark they are of.
    """

    kind: str
    found: tuple[str, ...]
    missing: str
    built_for: str | None = None


def catalog_jars(jars: Path, configuration: Mapping[str, str], spark_version: str) -> list[CatalogJars]:
    """Return what there is for each kind in Spark's directory of jars and in the settings that name more;
    nothing is loaded.
    """
    named = re.split(
        r"[\s,]+", ",".join(configuration.get(key, "") for key in ("spark.jars", "spark.jars.packages"))
    )
    names = sorted({path.stem for path in jars.glob("*.jar")} | {_jar_name(one) for one in named if one})
    return [_of(kind, pattern, missing, names, spark_version) for kind, pattern, missing in _WANTED]


def _jar_name(named: str) -> str:
    """A path or URL of a jar, or ``group:artifact:version``, as the name such a jar has."""
    parts = named.split(":")
    return f"{parts[1]}-{parts[2]}" if len(parts) == 3 and "/" not in named else Path(named).stem


def _of(
    kind: str, pattern: re.Pattern[str], missing: str, names: Iterable[str], spark_version: str
) -> CatalogJars:
    found = tuple(name for name in names if pattern.match(name))
    built = [match[1] for match in map(_BUILT_FOR.match, found) if match is not None]
    other = built[0] if built and not any(spark_version.startswith(f"{one}.") for one in built) else None
    return CatalogJars(kind, found, missing, other)
