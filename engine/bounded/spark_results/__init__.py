"""Rows from Spark's tasks to us."""
