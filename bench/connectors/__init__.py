"""Benches of connectors and formats."""
