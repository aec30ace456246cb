"""Lookups of joins: requests, cache and reloaded tables. In engine it may import task and bounded and
the layers below.
"""
