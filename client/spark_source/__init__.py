"""Penstock as a data source of Spark: what its jobs have committed, read by Spark's own workers from files."""
