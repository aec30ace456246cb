"""Table functions and Python functions."""
