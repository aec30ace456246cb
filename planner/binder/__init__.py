"""A SELECT and its clauses, names and types resolved."""
