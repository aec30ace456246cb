"""Spark SQL behind that interface: its JVM, sessions, tables and errors. It may import the same layers as
engine/bounded.
"""
