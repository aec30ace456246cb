"""What is derived of a node."""
