"""Deletion vectors against deltalake's own reading, and bitmaps against another library's."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, DataType
from penstock.engine.api.source import Position
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.delta.deletion_vectors import decode_bitmap
from penstock.engine.connectors.delta.source import DeltaSource
from tests.unit.engine.connectors.delta.delta_files import (
    declared,
    deltalake,
    read_from,
    request,
    with_options,
)
from tests.unit.engine.connectors.delta.foreign_tables import (
    add_version,
    added,
    deletion_vector,
    foreign,
    vector_file,
)

ROWS = 10
STREAM = {"scan.mode": "from-version", "scan.version": "0", "read-change-feed": "true"}
FEATURES = {"reader": ["deletionVectors"], "delta_enableDeletionVectors": "true"}


def removed(path: Path, vector: dict[str, Any] | None) -> dict[str, Any]:
    """Return the action that takes the data file out, as it was."""
    action = dict(added(path, vector)["add"])
    return {"remove": {**action, "extendedFileMetadata": True}}


def deleted_again_and_again(path: Path) -> None:
    """Write versions 1 to 4: rows deleted by a vector in the log, more by one in a file, all restored, and the
    file taken out while another comes.
    """
    rows = pa.table({"k": range(ROWS), "v": [f"v{key}" for key in range(ROWS)]})
    foreign(path, rows, **FEATURES)  # type: ignore[arg-type]
    first, second = deletion_vector([1, 4]), vector_file(path, [1, 4, 9], "ab")
    for before, after in ((None, first), (first, second), (second, None)):
        add_version(path, [removed(path, before), added(path, after)])
    pq.write_table(rows.slice(0, 2), path / "b.parquet")
    more = {**added(path)["add"], "path": "b.parquet", "size": (path / "b.parquet").stat().st_size}
    add_version(
        path,
        [
            removed(path, None),
            {"add": {**more, "deletionVector": deletion_vector([0]), "stats": '{"numRecords": 2}'}},
        ],
    )


def read(path: Path, columns: dict[str, DataType] | None = None, **options: str) -> list[Any]:
    source = DeltaSource(request(with_options(declared(path, columns), **options)))
    return read_from(source, *source.splits())[0]


def by_rows(path: Path, **options: str) -> list[Any]:
    """Read row by row, by a reader that begins where the last one was."""
    source = DeltaSource(request(with_options(declared(path), **options)))
    (split,), found = source.splits(), list[Any]()
    position: Position | None = None
    while (batch := (reader := source.open(split, position)).poll(1)) is not None:
        position = reader.position()
        assert isinstance(batch, Batch) and batch.weights is not None
        found += [(int(batch.weights[0]), *row.values()) for row in batch.rows.to_pylist()]
    return found


def fold(changes: list[Any]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for weight, *row in changes:
        counts[tuple(row)] += weight
        assert counts[tuple(row)] in (0, 1)
    return +counts


def there_at(path: Path, version: int) -> Counter[Any]:
    table = pa.table(deltalake.DeltaTable(str(path), version=version).scan())
    return Counter((row["k"], row["v"]) for row in table.to_pylist())


def test_versions_and_changes_are_those_of_another_reader(tmp_path: Path) -> None:
    path = tmp_path / "t"
    deleted_again_and_again(path)
    for version, count in enumerate((10, 8, 7, 10, 1)):
        expected = there_at(path, version)
        assert expected.total() == count
        assert Counter(row[1:] for row in read(path, **{"scan.version": str(version)})) == expected
        # COUNT(*) reads no column of the file
        assert (
            len(
                read(
                    path,
                    {"new": BIGINT},
                    **{"scan.mode": "full", "scan.version": str(version), "scan.end-version": str(version)},
                )
            )
            == count
        )
        ended = {"scan.end-version": str(version)}
        assert fold(read(path, **STREAM, **ended)) == expected
        whole = {**STREAM, "scan.mode": "full", "scan.version": str(min(version, 2))}
        assert fold(read(path, **whole, **ended)) == expected
    # only rows that a vector has more or less
    changes = by_rows(path, **STREAM, **{"scan.end-version": "3"})[ROWS:]
    assert [(weight, key) for weight, key, _ in changes] == [
        (-1, 1),
        (-1, 4),
        (-1, 9),
        (1, 1),
        (1, 4),
        (1, 9),
    ]
    assert fold(by_rows(path, **STREAM)) == there_at(path, 4)
    with pytest.raises(PenstockError, match="DAT-5308"):
        read(path, **{**STREAM, "read-change-feed": "false"})


def test_vectors_that_are_gone_or_damaged(tmp_path: Path) -> None:
    path = tmp_path / "t"
    foreign(path, pa.table({"k": [1, 2], "v": ["a", "b"]}), **FEATURES)  # type: ignore[arg-type]
    vector = vector_file(path, [1])
    add_version(path, [removed(path, None), added(path, vector)])
    (file,) = path.glob("deletion_vector*")
    data = bytearray(file.read_bytes())
    data[-6] ^= 1
    file.write_bytes(data)
    with pytest.raises(PenstockError, match="DAT-5304"):
        read(path, **STREAM)
    file.unlink()
    for options in (STREAM, {}):
        with pytest.raises(PenstockError, match="DAT-53"):
            read(path, **options)


def test_bitmaps_of_all_kinds_of_containers() -> None:
    random = np.random.default_rng(5)
    sparse = random.integers(0, 1 << 34, 500)
    dense = (3 << 16) + random.permutation(1 << 16)[:30_000]
    runs = np.concatenate([np.arange(start, start + 700) for start in range(0, 9 << 16, 5_000)])
    for values in ([], [0], [4095], range(4097), sparse, dense, runs, np.concatenate([sparse, dense, runs])):
        bitmap = BitMap64([int(value) for value in values])
        for optimized in (False, True):
            if optimized:
                bitmap.run_optimize()
            data = struct.pack("<i", 1681511377) + bitmap.serialize()
            assert decode_bitmap(data).tolist() == list(bitmap)
    for wrong in (b"", b"\0" * 12, struct.pack("<iqII", 1681511377, 1, 0, 7)):
        with pytest.raises((ValueError, struct.error)):
            decode_bitmap(wrong)
