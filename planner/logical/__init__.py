"""The logical plan: one file a family of nodes; a node knows its text and its identity. In planner it
may import expressions.
"""
