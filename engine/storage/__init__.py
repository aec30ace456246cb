"""Durable files behind one interface: on disk, in memory and in object stores. It may import api and layers
below.
"""
