"""Compiled numba loops over columns. In engine it may import api and the layers below."""
