"""Spark SQL: application, JVM, relations, errors."""
