"""Benches of the listeners of a server."""
