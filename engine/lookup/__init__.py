"""Lookup joins: asking, caching, versions of reloaded tables."""
