"""Iceberg tables without a JVM: catalogs, reading snapshots, and an exactly-once target."""
