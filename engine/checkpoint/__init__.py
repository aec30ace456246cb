"""Coordinator, snapshot format, store, restore, savepoints."""
