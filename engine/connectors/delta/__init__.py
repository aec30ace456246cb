"""Delta tables without a JVM: their log, reading versions and changes, and an exactly-once target."""
