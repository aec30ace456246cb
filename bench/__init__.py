"""Benches: each prints figures beside a named peer on the same data, by one command."""
