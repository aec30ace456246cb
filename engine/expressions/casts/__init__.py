"""CAST."""
