"""File formats: readers and writers, one format a file. In engine it may import expressions and
windowing and exchange and changelog and the layers below.
"""
