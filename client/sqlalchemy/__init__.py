"""The SQLAlchemy dialect ``penstock://`` and its own column types. See docs/SQLALCHEMY.md."""

from penstock.client.sqlalchemy.column_types import ARRAY, INTERVAL, MAP, ROW, TIMESTAMP, TINYINT, YEAR_MONTH
from penstock.client.sqlalchemy.dialect import PenstockDialect

__all__ = ["ARRAY", "INTERVAL", "MAP", "ROW", "TIMESTAMP", "TINYINT", "YEAR_MONTH", "PenstockDialect"]
