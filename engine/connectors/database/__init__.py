"""PostgreSQL, SQLite and DuckDB: scan, lookup and a two-phase sink. It may import the same layers as
engine/connectors.
"""
