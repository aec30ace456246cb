"""Spark SQL behind that interface: its JVM, sessions, tables and errors. It may import what
engine/bounded may.
"""
