"""Spark SQL's spellings. It may import what planner/sql_generator may."""
