"""Workers inside Spark's executors."""
