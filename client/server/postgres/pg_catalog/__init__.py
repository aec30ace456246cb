"""PostgreSQL's system catalog over ours, answered by DuckDB: what psql, drivers and tools ask for."""
