"""Databases of other systems, one a file, and what is done with any of them."""
