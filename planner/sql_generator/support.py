"""Backend support: which bounded backend runs a plan, and whether it can, decided before anything starts."""

from __future__ import annotations

from penstock.catalog.connectors.spark import SPARK, is_in_spark
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink

AUTO, DUCKDB = "auto", "duckdb"
"""Values of ``bounded.backend`` besides ``SPARK``: the one chosen for each plan, and DuckDB."""


def spark_tables(plan: LogicalPlan) -> list[CatalogTable]:
    """Return the Spark tables that a plan reads and writes."""
    tables = [node.table for node in plan.walk() if isinstance(node, Scan | Sink) and node.table is not None]
    return [table for table in tables if is_in_spark(table)]


def backend_for(plan: LogicalPlan, wanted: str) -> str:
    """Return the name of the backend that runs a bounded plan: ``wanted``, but Spark where Spark tables are
    read or written.
    """
    return SPARK if spark_tables(plan) else wanted


def speaks(plan: LogicalPlan, backend: str) -> bool:
    """Return whether a backend can run a bounded plan."""
    # the words of backends: not before there is a bounded plan
    from penstock.planner.sql_generator.duckdb.dialect import duckdb_sql
    from penstock.planner.sql_generator.spark.dialect import spark_sql

    try:
        spark_sql(plan) if backend_for(plan, backend) == SPARK else duckdb_sql(plan)
    except PenstockError as error:
        if error.code != "BND-5101":
            raise
        return False
    return True
