"""Spark's spellings."""
