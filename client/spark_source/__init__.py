"""Penstock as a data source of Spark."""
