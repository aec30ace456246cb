"""Files: listing, splits, reading, and an exactly-once sink. It may import the same layers as
engine/connectors.
"""
