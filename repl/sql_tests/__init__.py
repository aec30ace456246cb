"""Unit tests of SQL scripts: what a test file declares, the run of a test, and what differs. It may import
repl/launch and repl/output.
"""
