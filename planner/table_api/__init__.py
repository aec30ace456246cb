"""The fluent API."""
