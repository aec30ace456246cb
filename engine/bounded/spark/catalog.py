"""A catalog of the user's Spark as one of ours. Its databases and tables are looked up when one of its names
is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.catalog.connectors.spark import SPARK, spark_settings
from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.bounded.spark.errors import for_spark_alone, spark_error, spark_failures
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.bounded.spark.tables import is_missing, schema_here


class SparkCatalog:
    """One catalog of Spark: ``catalog`` of its options, else Spark's default one. The first request starts
    Spark.
    """

    system = "Spark"

    def __init__(self, options: dict[str, str]) -> None:
        self.default_database = options.get("default-database", "default")
        self.name = options.get("catalog", "spark_catalog")
        self._settings = spark_settings(options)

    def databases(self) -> list[str]:
        return self._column(f"SHOW NAMESPACES IN {_quoted(self.name)}", 0)

    def tables(self, database: str) -> list[str]:
        return self._column(f"SHOW TABLES IN {_quoted(self.name, self._real(database))}", 1)

    def table(self, full_name: str, database: str, name: str) -> CatalogTable | None:
        # the exact name first: one request in the usual case
        there = self._schema(database, name)
        if there is None:
            # then regardless of case: a catalog of Spark may be case-sensitive
            asked, database = (database, name), self._real(database)
            folded = {known.lower(): known for known in self.tables(database)}
            # no such table, or only the spelling that was just not found
            if name.lower() not in folded or (database, folded[name.lower()]) == asked:
                return None
            name = folded[name.lower()]
            there = self._schema(database, name)
        if there is None:
            return None
        schema = schema_here(there)
        options = {"connector": SPARK, "table-name": _quoted(self.name, database, name), **self._settings}
        return CatalogTable(full_name, schema, schema, options)

    def _real(self, database: str) -> str:
        """The name of a database in Spark's spelling."""
        return next((name for name in self.databases() if name.lower() == database.lower()), database)

    def _schema(self, database: str, name: str) -> Any:
        return self._ask_spark(
            "read a table's columns",
            lambda session: session.table(_quoted(self.name, database, name)).schema,
            None,
        )

    def _column(self, text: str, index: int) -> list[str]:
        return self._ask_spark(
            "list names", lambda session: [row[index] for row in session.sql(text).collect()], []
        )

    def _ask_spark(self, what: str, ask: Callable[[Any], Any], missing: Any) -> Any:
        """Return Spark's answer, or ``missing`` where a name does not exist."""
        try:
            # a session of its own: settings of a catalog must not leak into queries
            session = SESSIONS.new("UTC", self._settings)
        except PenstockError as error:
            raise for_spark_alone(error) from error.__cause__
        try:
            return SESSIONS.watch().call(what, lambda: ask(session))
        except spark_failures() as error:
            # an unknown name is an answer, all else an error
            if is_missing(error):
                return missing
            raise for_spark_alone(spark_error(error)) from error
        finally:
            SESSIONS.release(session)


def _quoted(*parts: str) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)
