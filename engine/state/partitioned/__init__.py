"""State of process table functions: variables and timers of each partition."""
