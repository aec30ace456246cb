"""DuckDB's spellings, with Spark's values. It may import what planner/sql_generator may."""
