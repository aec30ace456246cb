"""Operators of Top-N and deduplication. It may import what engine/operators may."""
