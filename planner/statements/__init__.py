"""Scripts and the statements that are no queries (lark)."""
