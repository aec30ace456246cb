"""Error codes of sources and sinks, one connector a file. It may import what catalog/error_codes may."""
