"""Files: listing, splits, reading, and an exactly-once sink. It may import what engine/connectors may."""
