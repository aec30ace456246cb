"""DuckDB's spellings, with the values Spark would return. It may import what planner/sql_generator may."""
