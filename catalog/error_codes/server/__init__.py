"""Error codes of ``penstock serve`` and its listeners. It may import what catalog/error_codes may."""
