"""Results: rows, their order, and changes. In client it imports no other folder."""
