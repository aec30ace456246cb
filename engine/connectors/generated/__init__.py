"""Sources that compute each row from its number. It may import what engine/connectors may."""
