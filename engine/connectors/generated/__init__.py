"""Sources that compute each row from its number. It may import the same layers as engine/connectors."""
