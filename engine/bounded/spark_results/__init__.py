"""The way of result rows from Spark's tasks to this process. It may import what engine/bounded may."""
