"""Interfaces, registry, small connectors."""
