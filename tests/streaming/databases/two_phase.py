"""Writers of a sink into a database, crashed between the steps of their protocol as a seed says, and taken
up again at another parallelism.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from random import Random

import numpy as np
import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import INT, STRING
from penstock.engine.api.failpoints import armed
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import Origin, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.database.sink import DatabaseSink
from tests.streaming.databases.places import Place

COLUMNS_2 = Schema((Field("k", INT), Field("v", STRING)))


def table(place: Place, key: bool = False) -> CatalogTable:
    there = {"url": place.url} if place.kind == "postgres" else {"path": place.path}
    options = {"connector": place.kind, "table-name": "out", **there}
    return CatalogTable("out", COLUMNS_2, COLUMNS_2, options, primary_key=("k",) if key else ())


def sink(
    place: Place,
    *,
    key: bool = False,
    subtask: int = 0,
    parallelism: int = 1,
    owner: str = "owner1",
    origin: Origin | None = None,
    resumes: bool = True,
) -> DatabaseSink:
    which = (0,) if key else None
    whose = {"owner": owner, "origin": origin, "resumes": resumes}
    return DatabaseSink(
        SinkRequest(
            table(place, key),
            COLUMNS_2,
            which,
            "abcdef0123",
            "job1",
            subtask,
            parallelism,
            Services(),
            **whose,
        )
    )


def batch(*keys: int, value: str = "v", weights: list[int] | None = None) -> Batch:
    rows = pa.record_batch({"k": pa.array(keys, pa.int32()), "v": pa.array([value] * len(keys))})
    return Batch(rows, None if weights is None else np.array(weights, np.int64))


class Crash(Exception):
    pass


def crash_at(hit: int) -> Callable[[str], None]:
    """Return what crashes when it is called for the so-manieth time."""
    calls = count(1)

    def crash(_: str) -> None:
        if next(calls) == hit:
            raise Crash

    return crash


def chaos(
    place: Place, seed: int, *, hasty: bool = False, checkpoints: int = 16, most: int = 40
) -> tuple[Counter[str], int]:
    """Write numbers in checkpoints at parallelism 3, 1 and 5 by turns, crashing where the seed says; return
    what was hit and how many were written.

    ``hasty``: a broken writer, which commits what is prepared before its checkpoint is complete.
    """
    random, hit, written, pending = Random(seed), Counter[str](), 0, []
    seen: set[int] = set()
    writers: list[DatabaseSink] = []
    parallelism, checkpoint, fresh = 3, 0, True
    while checkpoint < checkpoints:
        step = random.choice(["S2", "S5", "lost reply", "before commit", "none", "none", "none"])
        points = {step: crash_at(random.randint(1, parallelism))} if step in ("S2", "S5") else {}
        offset, begun = written, checkpoint
        try:
            with armed(points):
                if fresh:
                    for writer in writers:
                        writer.close()
                    writers = [sink(place, subtask=i, parallelism=parallelism) for i in range(parallelism)]
                    for writer in writers:
                        writer.recover(pending)
                    for i, item in enumerate(pending):
                        writers[i % parallelism].commit([item])
                    pending, fresh = [], False
                items = []
                for writer in writers:
                    rows = random.randint(0, most)
                    writer.write(batch(*range(offset, offset + rows)))
                    offset += rows
                    mine = writer.prepare(checkpoint + 1)
                    if hasty:
                        writer.commit(mine)
                    items.append(mine)
                checkpoint, written, pending = (
                    checkpoint + 1,
                    offset,
                    [item for mine in items for item in mine],
                )
                if step == "before commit":
                    raise Crash
                for writer, mine in zip(writers, items, strict=True):
                    writer.commit(mine)
                if step == "lost reply":
                    raise Crash
                pending = []
        except Crash:
            hit[f"{step}, {'complete' if checkpoint > begun else 'incomplete'}"] += 1
            fresh, parallelism = True, {3: 1, 1: 5, 5: 3}[parallelism]
        now = {row[0] for row in place.ask("SELECT k FROM out")}
        assert hasty or seen <= now, "a row that was read is gone"
        seen = now
    last = sink(place)
    last.recover(pending)
    last.commit(pending)
    last.close()
    for writer in writers:
        writer.close()
    return hit, written
