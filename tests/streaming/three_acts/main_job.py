"""The main job, ``queries/flights.sql``: its INSERT run over any directory of flights into any directory
of Parquet, and what stands there then.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb

from penstock.client.session import Session
from penstock.planner.statements.nodes import Query
from tests.harness.case_files import case_files
from tests.streaming.three_acts.oracle import FLIGHTS, ROOT

TEXT = (ROOT / "queries" / "flights.sql").read_text(encoding="utf-8")


def script(flights: Path, out: Path, rows_per_second: int = 0) -> str:
    """Return the script over ``flights``, replayed no faster than asked, with its Parquet in ``out``."""
    places = {
        "queries/data/flights'": f"{flights}'",
        "queries/data/": f"{ROOT}/queries/data/",
        "out/flights/delays'": f"{out}'",
    }
    places |= {
        "'source.replay' = 'true'": f"'source.replay' = 'true', 'source.rows-per-second' = '{rows_per_second}'"
    }
    return re.sub("|".join(places), lambda found: places[found[0]], TEXT)


def sample(directory: Path, every: int) -> Path:
    """Write each ``every``-th flight of the year, month by month and in order, to a directory; return it."""
    directory.mkdir()
    for month in case_files(FLIGHTS, "*.csv.gz"):
        header, *rows = gzip.decompress(month.read_bytes()).splitlines(keepends=True)
        (directory / month.name.removesuffix(".gz")).write_bytes(header + b"".join(rows[::every]))
    return directory


def run(flights: Path, out: Path, settings: dict[str, str], state_dir: Path | None = None) -> None:
    """Run the script up to and with its INSERT in a session of its own, to the job's end."""
    session = Session(
        {"bounded.backend": "duckdb", "table.dml-sync": "true", **settings}, state_dir=state_dir
    )
    try:
        for statement in session.parse(script(flights, out), "flights.sql"):
            if not isinstance(statement.node, Query):
                session.run(statement)
    finally:
        session.close()


def rows_in(out: Path) -> Counter[tuple[Any, ...]]:
    """Return the rows of all published files of a directory."""
    if not any(out.glob("*.parquet")):
        return Counter()
    return Counter(duckdb.connect().execute(f"FROM read_parquet('{out}/*.parquet')").fetchall())
