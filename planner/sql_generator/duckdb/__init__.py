"""DuckDB's spellings with Spark's meaning."""
