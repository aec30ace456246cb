"""What tasks of most jobs import in their first second, imported at once: for a process that workers are forked from."""

from __future__ import annotations

import contextlib

import numpy as np

import engine.connectors.datagen
import engine.connectors.filesystem_sink
import engine.connectors.filesystem_source
import engine.deploy.spark_worker
import engine.expressions.compiler
import engine.operators.calc
import engine.operators.group_aggregate
import engine.operators.join
import engine.operators.partition_top
import engine.operators.sink
import engine.operators.source
import engine.operators.top_n
import engine.operators.watermark
import engine.operators.window_aggregate  # noqa: F401
from engine.kernels.partition import counting_sort


def make_ready() -> None:
    """Do what is done once in a process: load a kernel, and with it what numba reads before its first; import pandas, as pyarrow does."""
    counting_sort(np.zeros(0, np.int64), 1)
    with contextlib.suppress(ImportError):
        import pandas  # noqa: F401
