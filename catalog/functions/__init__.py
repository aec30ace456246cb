"""Signatures and typing rules, one family a file."""
