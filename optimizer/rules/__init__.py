"""Rewrite rules, one a file."""
