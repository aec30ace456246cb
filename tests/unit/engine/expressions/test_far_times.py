"""Times that are moved beyond what 64 bits of microseconds, or 32 bits of days, can hold: an error. They came
out on the other side of 1970, and a watermark that did made every row late.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import penstock

ROW = "(VALUES (TIMESTAMP '2026-01-31 00:00:01', DATE '2026-01-31'), (NULL, NULL)) AS v(t, d)"


@pytest.fixture(scope="module", params=["streaming", "batch"])
def connection(request: pytest.FixtureRequest) -> Iterator[penstock.Connection]:
    with penstock.connect(settings={"execution.runtime-mode": request.param}) as connection:
        yield connection


@pytest.mark.parametrize(
    "moved",
    [
        "t - INTERVAL '300000' YEAR",
        "t + INTERVAL '299999' YEAR",
        "CAST(t AS TIMESTAMP_LTZ(6)) + INTERVAL '299999' YEAR",
        "TIMESTAMPADD(MONTH, 4000000, t)",
        "d + INTERVAL '178000000' YEAR",
        "ADD_MONTHS(d, 2147483647)",
        "TIMESTAMPADD(HOUR, 9000000000, t)",
        "DATE_ADD(d, 2147483647)",
    ],
)
def test_a_time_beyond_the_ends_is_an_error(connection: penstock.Connection, moved: str) -> None:
    with pytest.raises(penstock.Error, match=r"out of range for (TIMESTAMP|DATE)"):
        connection.execute(f"SELECT {moved} FROM {ROW}").fetch_arrow_table()


def test_the_years_that_64_bits_hold_are_reached(connection: penstock.Connection) -> None:
    far = "t + INTERVAL '290000' YEAR - INTERVAL '290000' YEAR"
    query = f"SELECT CAST({far} AS STRING), d + INTERVAL '1' MONTH FROM {ROW}"
    first, empty = connection.execute(query).fetchall()
    assert (first[0], str(first[1]), empty) == ("2026-01-31 00:00:01", "2026-02-28", (None, None))
