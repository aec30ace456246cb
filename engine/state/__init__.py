"""Keyed state: snapshots, change tracking and time to live. In engine it may import network and
functions and formats and the layers below.
"""
