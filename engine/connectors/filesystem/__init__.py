"""Files, exactly once."""
