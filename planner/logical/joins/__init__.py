"""Joins of the logical plan, one kind a file; they import the nodes above this folder."""
