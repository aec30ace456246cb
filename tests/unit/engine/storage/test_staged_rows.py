"""Staged rows that are not as they were written are refused before any of them is given."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.storage.staged_rows import MANIFEST, StagedRows, stage

FLIPS = 60


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    stage(
        tmp_path / "rows", [pa.record_batch({"a": list(range(start, start + 50))}) for start in (0, 50, 100)]
    )
    return tmp_path / "rows"


def test_every_flipped_bit_and_every_cut_is_told(staged: Path) -> None:
    random = Random(3)
    for path in sorted(staged.iterdir()):
        whole = path.read_bytes()
        for number in range(FLIPS):
            data = bytearray(whole)
            if number % 4:
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            else:
                del data[random.randrange(len(data)) :]
            path.write_bytes(data)
            with pytest.raises(PenstockError, match=path.name) as told:
                StagedRows(staged).check()
            assert told.value.code == "BND-5201"
        path.write_bytes(whole)
    StagedRows(staged).check()


def test_a_lost_file_is_told(staged: Path) -> None:
    (staged / "p000000-000001.arrow").unlink()
    with pytest.raises(PenstockError, match=r"p000000-000001\.arrow"):
        StagedRows(staged).check()
    (staged / MANIFEST).unlink()
    with pytest.raises(PenstockError, match=MANIFEST):
        StagedRows(staged)
