"""Control messages and their codec."""
