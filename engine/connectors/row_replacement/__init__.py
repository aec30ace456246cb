"""Statements that replace rows of a table: the new ones wait in files, and one commit replaces the old."""
