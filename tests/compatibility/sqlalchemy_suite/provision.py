"""How SQLAlchemy's suite prepares this database: a second schema, temporary tables, and rows deleted by
another way than DELETE, which does not exist.
"""

from __future__ import annotations

import warnings
from typing import Any

from sqlalchemy import event
from sqlalchemy.testing import provision


@provision.generate_driver_url.for_db("penstock")
def _one_driver(url: Any, driver: str, query: str | None) -> Any:
    return url


@provision.post_configure_engine.for_db("penstock")
def _second_schema(url: Any, engine: Any, follower_ident: str | None) -> None:
    @event.listens_for(engine, "connect")
    def create(connection: Any, record: Any) -> None:
        connection.execute("CREATE DATABASE IF NOT EXISTS test_schema")


def pytest_collection_finish() -> None:
    """Do not make an error of the warning that a constraint is not enforced, as the suite does of others."""
    warnings.filterwarnings("ignore", message="penstock does not enforce")


@provision.temp_table_keyword_args.for_db("penstock")
def _temporary(cfg: Any, engine: Any) -> dict[str, list[str]]:
    return {"prefixes": ["TEMPORARY"]}


@provision.delete_from_all_tables.for_db("penstock")
def _create_anew(connection: Any, cfg: Any, metadata: Any) -> None:
    for table in metadata.sorted_tables:
        table.drop(connection, checkfirst=True)
        table.create(connection)
