"""The transfer of result rows from Spark's tasks to this process. It may import the same layers as
engine/bounded.
"""
