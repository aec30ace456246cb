"""The result of a statement: its shape, its rows as they come, their final order."""
