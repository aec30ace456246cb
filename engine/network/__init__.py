"""Data plane between task managers."""
