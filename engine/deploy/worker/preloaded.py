"""The imports of most jobs' tasks in their first second, for a process that workers are forked from."""

from __future__ import annotations

import contextlib

import numpy as np

import penstock.engine.connectors.filesystem.sink
import penstock.engine.connectors.filesystem.source
import penstock.engine.connectors.generated.datagen_source
import penstock.engine.deploy.spark.worker
import penstock.engine.expressions.compiler
import penstock.engine.operators.aggregate.group_aggregate
import penstock.engine.operators.calc
import penstock.engine.operators.join.regular_join
import penstock.engine.operators.rank.partition_top_n
import penstock.engine.operators.rank.top_n
import penstock.engine.operators.sink
import penstock.engine.operators.source.source
import penstock.engine.operators.source.watermark_generator
import penstock.engine.operators.window.window_aggregate  # noqa: F401
from penstock.engine.kernels.partition import counting_sort


def make_ready() -> None:
    """Do the work of a process's first task: load a kernel, and with it what numba reads before its first;
    import pandas, as pyarrow does.
    """
    # any kernel will do; this one is small
    counting_sort(np.zeros(0, np.int64), 1)
    with contextlib.suppress(ImportError):
        import pandas  # noqa: F401
