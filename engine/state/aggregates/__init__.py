"""One accumulator a file."""
