"""Bounded backends: interface and DuckDB."""
