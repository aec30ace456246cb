"""The logical plan: one file per family of nodes. A node answers for its own text, digest and properties. In
planner it may import expressions.
"""
