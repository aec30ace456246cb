"""Checkpoints: coordinator, snapshot format, store, restore and savepoints. In engine it may import task
and bounded and the layers below.
"""
