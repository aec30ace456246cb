"""PostgreSQL, SQLite, DuckDB: scan, lookup, two-phase sink."""
