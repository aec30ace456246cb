"""Decorrelation."""
