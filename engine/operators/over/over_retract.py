"""OVER under changes: the values of a touched partition's rows are computed anew, and those that differ
are replaced.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.api.job_options import JobOptions
from penstock.engine.operators.over.over_frames import OverValues
from penstock.engine.operators.over.partition_recompute import PartitionChanges, columns_of
from penstock.engine.operators.over.partitions import Partitions
from penstock.planner.physical.operator_specs import OverSpec


class OverChangesOperator(PartitionChanges):
    """Takes any order, any frame and any changes."""

    def __init__(self, spec: OverSpec, options: JobOptions) -> None:
        super().__init__(spec, options)
        self._values = OverValues(spec.calls, spec.order, spec.frame, options.time_zone)

    def show(self, part: Partitions) -> list[pa.Array]:
        return columns_of(part.rows, self._values.of(part, self._values.peers.of(part)))
