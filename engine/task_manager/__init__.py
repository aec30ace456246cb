"""Slots, and the placement and deployment of tasks to them. In engine it may import lookup and
checkpoint and the layers below.
"""
