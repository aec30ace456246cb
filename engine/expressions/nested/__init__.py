"""Arrays, maps, rows."""
