"""Typed expression nodes and the casts between them. In planner it imports no other folder."""
