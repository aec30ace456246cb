"""Benches of state: checkpoints, restores, growth, disk."""
