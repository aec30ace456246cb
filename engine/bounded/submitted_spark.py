"""The Spark that ``spark-submit`` has started this program with."""

from __future__ import annotations

import os
from typing import Any

from catalog.errors import PenstockError
from engine.bounded.own_spark import OwnSpark
from engine.bounded.spark_errors import machine_gone, spark_failures, start_refused

GATEWAY = "PYSPARK_GATEWAY_PORT"
"""The variable that says that there is one."""


class SubmittedSpark(OwnSpark):
    """The virtual machine is our parent; it ends when we do, and is not ours to end."""

    def __init__(self) -> None:
        """Open a session through its gateway. BND-5025 when it refuses."""
        self._parent = os.getppid()
        from pyspark.sql import SparkSession

        try:
            self._first: Any = SparkSession.builder.getOrCreate()
        except spark_failures() as error:
            raise start_refused(error) from None

    @property
    def alive(self) -> bool:
        return os.getppid() == self._parent

    def gone(self) -> PenstockError | None:
        return None if self.alive else machine_gone(None)

    def give_up(self) -> None:
        """Nothing of ours."""

    def last_words(self) -> str:
        return ""

    def close(self) -> None:
        self._first.stop()
