"""Arithmetic on weighted rows: fold and consolidate changes. In engine it may import storage and kernels
and the layers below.
"""
