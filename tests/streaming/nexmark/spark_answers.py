"""Spark's answers to Nexmark: the same events as Parquet files, the same texts run as bounded queries."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from bench.nexmark_events import KINDS, files_ddl
from penstock.client.session import Session
from tests.streaming.nexmark.site import asked, asked_of


class SparkAnswers:
    """A session whose tables are Spark's. Writes the events of a DuckDB database into ``folder``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        for kind in KINDS:
            (folder / "parquet" / kind).mkdir(parents=True)
            connection.execute(
                f"COPY {kind} TO '{folder / 'parquet' / kind / 'part.parquet'}' (FORMAT parquet)"
            )
        self._folder = folder

    def answer(self, query: str) -> pa.Table:
        """Return Spark's answer to a query."""
        session = Session({"bounded.backend": "spark", "execution.runtime-mode": "batch"})
        try:
            for kind in KINDS:
                session.execute(files_ddl(kind, self._folder, "parquet"))
            statements = session.parse(asked(query), f"{query}.sql")
            for statement in statements[:-1]:
                session.run(statement)
            return session.pipeline.run(asked_of(statements[-1].node)).final_rows(600)
        finally:
            session.close()
