"""Top-N and deduplication."""
