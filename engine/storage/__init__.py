"""Durable files behind one interface, on disk and in memory. In engine it may import api and the layers
below.
"""
