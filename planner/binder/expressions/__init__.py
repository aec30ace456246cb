"""Scalar expressions, typed."""
