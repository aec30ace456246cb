"""The logical plan: one file a node family."""
