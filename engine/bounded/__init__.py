"""Backends that run bounded plans: Spark SQL and DuckDB."""
