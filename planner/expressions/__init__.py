"""Typed expression nodes."""
