"""Indexes from keys to dense slots. It may import what engine/state may."""
