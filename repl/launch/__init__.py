"""Flags, configuration, and the session they open. In repl it may import output."""
