"""Numbers, comparison, hashes."""
