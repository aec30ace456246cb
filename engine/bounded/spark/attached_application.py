"""A Spark this program already has: one started by ``spark-submit``, or one the program started itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark.errors import machine_gone, spark_failures, start_refused
from penstock.engine.bounded.spark.local_application import OwnSpark

GATEWAY = "PYSPARK_GATEWAY_PORT"
"""The environment variable PySpark uses for the port of an existing gateway."""
Additions = Callable[[Mapping[str, str]], Mapping[str, str]]
"""A function from the settings of a starting Spark to the additional ones it also needs."""


class SubmittedSpark(OwnSpark):
    """The Spark of our parent virtual machine. It ends when we do; we must not end it."""

    def __init__(self, settings: Mapping[str, str], additions: Additions) -> None:
        """Start Spark in it with ``settings``, which override those of ``spark-submit``. BND-5025 when it
        refuses.
        """
        # spark-submit starts Python as a child of its virtual machine: a new parent means that it has ended
        self._parent = os.getppid()
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        try:
            SparkContext._ensure_initialized()
            # SparkConf reads what spark-submit has set, once its gateway is connected
            conf = {**dict(SparkConf().getAll()), **settings}
            self._first: Any = SparkSession.builder.config(map={**settings, **additions(conf)}).getOrCreate()
        except spark_failures() as error:
            raise start_refused(error) from None

    @property
    def alive(self) -> bool:
        return os.getppid() == self._parent

    def gone(self) -> PenstockError | None:
        return None if self.alive else machine_gone(None)

    def abandon(self) -> None:
        """Nothing: the virtual machine is not ours."""

    def last_words(self) -> str:
        return ""

    def close(self) -> None:
        self._first.stop()


class ProgramsSpark(SubmittedSpark):
    """A Spark that the program itself started, with a new session. It is never ended by us."""

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        self._machine = _machine()
        self._first = SparkSession.builder.getOrCreate()

    @property
    def alive(self) -> bool:
        # without a process of ours (a remote gateway) only a failing call would show its end
        return self._machine is None or self._machine.poll() is None

    def close(self) -> None:
        """Nothing: the session is not ours."""


def programs_spark() -> ProgramsSpark | None:
    """Return the Spark this program has started with PySpark; ``None`` when there is none, or it is dead.
    Imports nothing.
    """
    return ProgramsSpark() if has_programs_spark() else None


def has_programs_spark() -> bool:
    """Return whether this program has started a Spark with PySpark that is alive. Imports nothing."""
    # an attribute of a module that is loaded, if it is: nothing here starts Spark
    if _context() is None:
        return False
    machine = _machine()
    return machine is None or machine.poll() is None


def _context() -> Any:
    classes = sys.modules.get("pyspark.core.context")
    return None if classes is None else classes.SparkContext._active_spark_context


def _machine() -> Any:
    """Return the process of the virtual machine, ``None`` where it is not our child."""
    return getattr(getattr(_context(), "_gateway", None), "proc", None)
