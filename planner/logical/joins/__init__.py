"""Joins of the logical plan, one kind a file; it may import the other files of the logical plan."""
