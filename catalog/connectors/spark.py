"""Options of a table of Spark: its name there, and settings of Spark that lead to it."""

from __future__ import annotations

from penstock.catalog.connectors.filesystem import RELOAD_OPTION
from penstock.catalog.connectors.option import Option
from penstock.catalog.tables import CatalogTable

SPARK = "spark"
# Such keys are passed to Spark as they are.
SETTING_PREFIX = "spark."
SPARK_OPTIONS = (
    Option(
        "table-name",
        required=True,
        help="the table's name in Spark: catalog.database.table, or the end of it",
    ),
    # A join as of a processing time reads the table again this often.
    RELOAD_OPTION,
    Option(
        f"{SETTING_PREFIX}*",
        help="a setting of Spark, e.g. spark.sql.catalog.<name>; names of settings keep their case",
    ),
)
# Keys of CREATE CATALOG .. WITH ('type' = 'spark', ..) beside the settings of Spark.
CATALOG_KEYS = ("type", "catalog", "default-database")


def is_in_spark(table: CatalogTable) -> bool:
    """Return whether a table is one of Spark's own: only Spark reads it and writes it."""
    return table.connector == SPARK


def spark_settings(options: dict[str, str]) -> dict[str, str]:
    """Return the settings of Spark among options."""
    return {key: value for key, value in options.items() if key.startswith(SETTING_PREFIX)}
