"""Top-N per partition under any changes: all rows are kept, for one taken back lets another in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.operators.over.partition_recompute import PartitionChanges, columns_of
from penstock.engine.operators.over.partitions import Partitions
from penstock.engine.operators.over.peers import Peers
from penstock.planner.physical.operator_specs import PartitionTopSpec


class PartitionTopOperator(PartitionChanges):
    """Shows the rows of a partition whose rank is at most the limit, with the rank where it is asked for."""

    def __init__(self, spec: PartitionTopSpec, options: JobOptions) -> None:
        super().__init__(spec, options)
        self._peers = Peers(spec.order, options.time_zone)
        self._rank, self._limit, self._shows_rank = spec.rank, spec.limit, spec.shows_rank
        if spec.rank == "row_number":
            # of equal rows no more than that are shown, while all of them have one rank
            self._most_copies = spec.limit

    def show(self, part: Partitions) -> list[pa.Array]:
        ranks = self._peers.ranks(part, self._rank)
        first = np.flatnonzero(ranks <= self._limit)
        rows = part.rows.take(array_of(first))
        return columns_of(rows, [array_of(ranks[first].astype(np.int32))] if self._shows_rank else [])
