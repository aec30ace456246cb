"""Channels, input gate, record writers, rows in flight."""
