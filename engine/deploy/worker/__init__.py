"""A worker process."""
