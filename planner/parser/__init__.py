"""Query text to syntax trees."""
