"""A SELECT and its clauses, with names and types resolved. In planner it may import statements and the
layers below.
"""
