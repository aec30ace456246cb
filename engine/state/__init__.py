"""Snapshots, change tracking, TTL of keyed state."""
