"""Whether a bounded backend has words for a plan, asked before anything is started."""

from __future__ import annotations

from catalog.errors import PenstockError
from planner.logical import LogicalPlan


def speaks(plan: LogicalPlan, backend: str) -> bool:
    """Return whether a backend, by its name, can say a bounded plan."""
    from planner.duckdb_sql import duckdb_sql  # the words of backends: not before there is a bounded plan
    from planner.spark_sql import spark_sql

    try:
        spark_sql(plan) if backend == "spark" else duckdb_sql(plan)
    except PenstockError as error:
        if error.code != "BND-5101":
            raise
        return False
    return True
