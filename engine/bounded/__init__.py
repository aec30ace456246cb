"""The interface of a bounded backend, and DuckDB behind it. In engine it may import state and connectors
and the layers below.
"""
