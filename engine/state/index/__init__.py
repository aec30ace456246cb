"""Keys to dense slots."""
