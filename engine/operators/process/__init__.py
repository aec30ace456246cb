"""The operator of process table functions and what it passes to their classes. It may import what
engine/operators may.
"""
