"""Geohashes: those of ClickHouse's manual and of Wikipedia, and of random places those of the definition, which
halves a range a bit.
"""

from __future__ import annotations

import math
import random
from contextlib import closing

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

BASE_32 = "0123456789bcdefghjkmnpqrstuvwxyz"
KNOWN = {
    (-5.60302734375, 42.593994140625): "ezs42d000000",
    (10.40744, 57.64911): "u4pruydqqvj8",
    (180.0, 90.0): "zzzzzzzzzzzz",
    (-180.0, -90.0): "000000000000",
}


def halved(longitude: float, latitude: float) -> str:
    """Return the geohash of a place by its definition."""
    ranges = [[-180.0, 180.0], [-90.0, 90.0]]
    letters, value = [], 0
    for bit in range(60):
        within = ranges[bit % 2]
        middle = (within[0] + within[1]) / 2
        above = (longitude, latitude)[bit % 2] >= middle
        within[0 if above else 1] = middle
        value = value << 1 | above
        if bit % 5 == 4:
            letters.append(BASE_32[value])
            value = 0
    return "".join(letters)


@pytest.mark.parametrize("mode", ["streaming", "automatic"])
def test_geohashes(mode: str) -> None:
    dice = random.Random(5)
    # degrees of a grid lie on the border of two cells
    grid = [(dice.randint(-16, 16) * 11.25, dice.randint(-16, 16) * 5.625) for _ in range(200)]
    places = [*KNOWN, *grid, *((dice.uniform(-180, 180), dice.uniform(-90, 90)) for _ in range(800))]
    nowhere = [(180.1, 0.0), (0.0, -90.1), (math.nan, 0.0), (math.inf, 0.0), (None, 0.0), (0.0, None)]
    longitudes, latitudes = zip(*places, *nowhere, strict=True)
    table = pa.table({"lon": pa.array(longitudes, pa.float64()), "lat": pa.array(latitudes, pa.float64())})
    with closing(Session({"execution.runtime-mode": mode, "bounded.backend": "duckdb"})) as session:
        session.register("places", table.append_column("n", pa.array(range(len(table)))))
        rows = session.execute(
            "SELECT n, geohashEncode(lon, lat) AS g, geohashEncode(lon, lat, 5) AS five FROM places WHERE n >= 0"
        ).final_rows(PATIENCE_S)
    found = {row["n"]: row for row in rows.to_pylist()}
    hashes = [found[n]["g"] for n in range(len(table))]
    assert hashes[: len(KNOWN)] == list(KNOWN.values())
    assert hashes[: len(places)] == [halved(*place) for place in places]
    assert hashes[len(places) :] == [None] * len(nowhere)
    assert all(row["five"] == (row["g"] and row["g"][:5]) for row in found.values())
