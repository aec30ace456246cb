"""Rows and messages as text. In repl it imports no other folder."""
