"""OVER."""
