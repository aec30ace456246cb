"""Files in an object store: a crash at every request, a second attempt at every request; whoever lists the
directory sees each row of each complete checkpoint once.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import MemoryStore

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.connectors.filesystem.object_target import EPOCHS, ObjectFilesTarget
from tests.harness.reading import table_of
from tests.harness.runtime.simulation import PowerLoss
from tests.unit.engine.checkpoint.test_object_checkpoints import WatchedClient

SCHEMA = Schema((Field("id", BIGINT), Field("d", BIGINT)))
WRITER = EpochWriter("owner", "op", 0)


def target(
    backing: Any, client: WatchedClient | None = None, *, job: str = "job", **options: str
) -> ObjectFilesTarget:
    parted = ("d",) if options.pop("parted", "") else ()
    given = {"connector": "filesystem", "path": "s3://bucket/out", "format": "parquet", **options}
    table = table_of({"id": BIGINT, "d": BIGINT}, given, partitioned_by=parted)
    request = SinkRequest(table, SCHEMA, None, "op", job, 0, 1, Services(), owner="owner")
    made = WatchedClient(backing) if client is None else client
    made.probed = True
    return ObjectFilesTarget(request, made)


def epoch(number: int) -> list[pa.RecordBatch]:
    """Return the rows of an epoch: three in three files."""
    ids = [number * 10 + n for n in range(3)]
    return [
        pa.record_batch({"id": pa.array([i], pa.int64()), "d": pa.array([i % 2], pa.int64())}) for i in ids
    ]


def visible(backing: Any) -> list[int]:
    """Return the ids that a reader finds who takes every file of the directory that is not hidden."""
    client = WatchedClient(backing)
    keys = [found.key for found in client.below("out") if not found.key.startswith(f"out/{EPOCHS}")]
    tables = [pq.read_table(io.BytesIO(client.get(key)[0])) for key in keys]
    return sorted(i for table in tables for i in table["id"].to_pylist())


def rows_of(epochs: range) -> list[int]:
    return [number * 10 + n for number in epochs for n in range(3)]


def life(made: ObjectFilesTarget, epochs: range) -> None:
    made.fence([WRITER])
    for number in epochs:
        if made.last_committed(WRITER) < number:
            made.commit(WRITER, number, epoch(number))


ROLLING = {"sink.rolling.rows": "1"}


def requests_of_a_life() -> int:
    client = WatchedClient(MemoryStore())
    life(target(None, client, **ROLLING), range(1, 4))
    return client.number


def test_each_row_once_wherever_an_attempt_dies() -> None:
    for at in range(1, requests_of_a_life() + 1):
        for moment in ("before", "after"):
            backing = MemoryStore()
            client = WatchedClient(backing)

            def die(now: int, at: int = at) -> None:
                if now >= at:
                    raise PowerLoss

            setattr(client, moment, die)
            with pytest.raises(PowerLoss):
                life(target(None, client, **ROLLING), range(1, 4))
            # another job's name, and other sizes of files, than those of the attempt that died
            life(target(backing, job="other", **{"sink.rolling.rows": "2"}), range(1, 4))
            assert visible(backing) == rows_of(range(1, 4)), (at, moment)


def test_a_stale_attempt_is_refused_wherever_it_stopped() -> None:
    refused = 0
    for at in range(3, requests_of_a_life() + 1):
        backing = MemoryStore()
        client = WatchedClient(backing)

        def overtake(now: int, at: int = at, backing: Any = backing) -> None:
            if now == at:
                life(target(backing, **ROLLING), range(1, 6))

        client.before = overtake
        try:
            life(target(None, client, **ROLLING), range(1, 4))
        except PenstockError as error:
            assert error.code == "STA-3504"
            refused += 1
        assert visible(backing) == rows_of(range(1, 6)), at
    assert refused > 5


def test_without_the_mark_rows_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ObjectFilesTarget, "_delete_others", lambda *_: None)
    backing = MemoryStore()
    client = WatchedClient(backing)
    client.after = _dies_behind_the_second_file(client)
    with contextlib.suppress(PowerLoss):
        life(target(None, client, **ROLLING), range(1, 2))
    life(target(backing, job="other", **ROLLING), range(1, 2))
    assert visible(backing) != rows_of(range(1, 2))


def _dies_behind_the_second_file(client: WatchedClient) -> Callable[[int], None]:
    def die(_: int) -> None:
        if sum("part-" in found.key for found in WatchedClient(client._store).below("out")) > 1:
            raise PowerLoss

    return die


def test_partitions_and_names() -> None:
    backing = MemoryStore()
    life(target(backing, parted="yes"), range(7, 8))
    keys = [found.key for found in WatchedClient(backing).below("out")]
    name = WRITER.name
    assert keys == [
        f"out/{EPOCHS}/{name}",
        f"out/d=0/part-job-op-0000-000007-{name}-0000.parquet",
        f"out/d=1/part-job-op-0000-000007-{name}-0001.parquet",
    ]
    made = target(backing)
    made.retire(WRITER)
    assert made.last_committed(WRITER) == 0 and visible(backing) == rows_of(range(7, 8))


def test_changes_are_written_with_their_op() -> None:
    backing = MemoryStore()
    made = target(backing, **{"changelog.mode": "upsert"})
    assert made.form is StagedForm.CHANGES
    made.fence([WRITER])
    ops = pa.array(["+I", "-U", "+U", "-D"])
    rows = pa.record_batch({"op": ops, "id": pa.array([1, 1, 1, 2]), "d": pa.array([1, 1, 2, 2])})
    made.commit(WRITER, 1, [rows])
    client = WatchedClient(backing)
    (key,) = [found.key for found in client.below("out") if "part-" in found.key]
    assert pq.read_table(io.BytesIO(client.get(key)[0]))["op"].to_pylist() == ["+I", "+U", "-D"]


def test_a_damaged_mark_is_told() -> None:
    backing = MemoryStore()
    WatchedClient(backing).put(f"out/{EPOCHS}/{WRITER.name}", b"{}")
    with pytest.raises(PenstockError) as refused:
        target(backing).fence([WRITER])
    assert refused.value.code == "DAT-5514"
