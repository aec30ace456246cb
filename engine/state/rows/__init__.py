"""Stored rows: join sides, buffers that wait for time."""
