"""PostgreSQL, SQLite and DuckDB: scan, lookup and a two-phase sink. It may import what engine/connectors
may.
"""
