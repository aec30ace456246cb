"""Operators of joins: regular, interval, temporal, snapshot and lookup. It may import what
engine/operators may.
"""
