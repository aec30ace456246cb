"""Every error code with its cause and its cure, one family a file."""
