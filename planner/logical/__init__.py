"""The logical plan: one file a family of nodes; a node answers for its text, its digest and its rows. In
planner it may import expressions.
"""
