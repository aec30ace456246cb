"""State primitives of keyed operators."""
