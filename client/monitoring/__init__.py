"""Prometheus and bottlenecks."""
