"""Provenance: the input rows of a result row, and the operator that let an expected row go, as bounded plans.
In planner it may import logical and expressions.
"""
